// SPDX-License-Identifier: MIT
/* What the soft miniport answers to queries: its counters, connections and endpoints. */
#ifndef SOFTNDK_NDIS_SOFT_OIDS_H
#define SOFTNDK_NDIS_SOFT_OIDS_H

#include <ndis.h>

/* Answers a query of the interface's numbers and lists; anything else NDIS_STATUS_NOT_SUPPORTED.
 * PASSIVE_LEVEL; no lock is held. */
NDIS_STATUS soft_oids_query(ULONG index, PNDIS_OID_REQUEST request);

#endif
