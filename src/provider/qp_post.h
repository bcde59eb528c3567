// SPDX-License-Identifier: MIT
/* The posting slots of NDK_QP_DISPATCH (qp_post.c). */
#ifndef SOFTNDK_PROVIDER_QP_POST_H
#define SOFTNDK_PROVIDER_QP_POST_H

#include <ndkpi.h>

NTSTATUS qp_send(NDK_QP *qp, PVOID context, CONST NDK_SGE *sgl, ULONG sges, ULONG flags);
NTSTATUS qp_send_and_invalidate(NDK_QP *qp, PVOID context, CONST NDK_SGE *sgl, ULONG sges,
                                ULONG flags, UINT32 token);
NTSTATUS qp_receive(NDK_QP *qp, PVOID context, CONST NDK_SGE *sgl, ULONG sges);
NTSTATUS qp_read(NDK_QP *qp, PVOID context, CONST NDK_SGE *sgl, ULONG sges, UINT64 address,
                 UINT32 token, ULONG flags);
NTSTATUS qp_write(NDK_QP *qp, PVOID context, CONST NDK_SGE *sgl, ULONG sges, UINT64 address,
                  UINT32 token, ULONG flags);
NTSTATUS qp_post_bind(NDK_QP *qp, PVOID context, NDK_MR *mr, NDK_MW *mw, PVOID address,
                      SIZE_T length, ULONG flags);
NTSTATUS qp_fast_register(NDK_QP *qp, PVOID context, NDK_MR *mr, ULONG pages,
                          CONST NDK_LOGICAL_ADDRESS *array, ULONG fbo, SIZE_T length, PVOID base,
                          ULONG flags);
NTSTATUS qp_invalidate(NDK_QP *qp, PVOID context, NDK_OBJECT_HEADER *object, ULONG flags);

#endif
