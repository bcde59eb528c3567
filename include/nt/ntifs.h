// SPDX-License-Identifier: MIT
/*
 * ntifs.h - the name under which drivers include more of the kernel than ntddk.h has; of what is
 * beyond it, NDK consumers use nothing.
 */
#ifndef SOFTNDK_NTIFS_H
#define SOFTNDK_NTIFS_H

#include "ntddk.h"

#endif /* SOFTNDK_NTIFS_H */
