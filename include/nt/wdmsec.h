// SPDX-License-Identifier: MIT
/*
 * wdmsec.h - who may open a device, as security descriptors in text. There are no devices to open
 * here, so the texts are constants and no more.
 */
#ifndef SOFTNDK_WDMSEC_H
#define SOFTNDK_WDMSEC_H

#include "wdm.h"

/* The kernel alone; the system, and administrators; also everybody in part or in full. */
#define SOFTNDK_SDDL(name, text)                                                                   \
    static const UNICODE_STRING __attribute__((unused)) name = RTL_CONSTANT_STRING(text)
SOFTNDK_SDDL(SDDL_DEVOBJ_KERNEL_ONLY, u"D:P");
SOFTNDK_SDDL(SDDL_DEVOBJ_SYS_ALL, u"D:P(A;;GA;;;SY)");
SOFTNDK_SDDL(SDDL_DEVOBJ_SYS_ALL_ADM_ALL, u"D:P(A;;GA;;;SY)(A;;GA;;;BA)");
SOFTNDK_SDDL(SDDL_DEVOBJ_SYS_ALL_ADM_RX, u"D:P(A;;GA;;;SY)(A;;GRGX;;;BA)");
SOFTNDK_SDDL(SDDL_DEVOBJ_SYS_ALL_ADM_RWX_WORLD_R, u"D:P(A;;GA;;;SY)(A;;GRGWGX;;;BA)(A;;GR;;;WD)");
SOFTNDK_SDDL(SDDL_DEVOBJ_SYS_ALL_ADM_RWX_WORLD_R_RES_R,
             u"D:P(A;;GA;;;SY)(A;;GRGWGX;;;BA)(A;;GR;;;WD)(A;;GR;;;RC)");
SOFTNDK_SDDL(SDDL_DEVOBJ_SYS_ALL_ADM_RWX_WORLD_RW_RES_R,
             u"D:P(A;;GA;;;SY)(A;;GRGWGX;;;BA)(A;;GRGW;;;WD)(A;;GR;;;RC)");
SOFTNDK_SDDL(SDDL_DEVOBJ_SYS_ALL_ADM_RWX_WORLD_RWX_RES_RWX,
             u"D:P(A;;GA;;;SY)(A;;GRGWGX;;;BA)(A;;GRGWGX;;;WD)(A;;GRGWGX;;;RC)");
#undef SOFTNDK_SDDL

#endif /* SOFTNDK_WDMSEC_H */
