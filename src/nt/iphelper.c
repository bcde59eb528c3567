// SPDX-License-Identifier: MIT
/*
 * The IP helper, over a list of interfaces: the host's, unless an upper floor that gives interfaces
 * other indexes and names puts its own in place. A fresh look each time. A LUID is made of type and
 * index.
 */
#include <stdlib.h>
#include <string.h>

#include <netioapi.h>

#include "base/red.h"
#include "nt/nt.h"
#include "nt/utf.h"
#include "os/os.h"

static int (*interface_list)(struct os_interface *out, unsigned max) = os_interfaces;

void nt_interface_source(int (*list)(struct os_interface *out, unsigned max))
{
    __atomic_store_n(&interface_list, list ? list : os_interfaces, __ATOMIC_RELEASE);
}

static NET_LUID luid_of(const struct os_interface *i)
{
    NET_LUID luid = {.Value = 0};

    luid.Info.NetLuidIndex = i->index & 0xffffff;
    luid.Info.IfType = i->loopback ? IF_TYPE_SOFTWARE_LOOPBACK : IF_TYPE_ETHERNET_CSMACD;
    return luid;
}

/* Finds an interface by index, or by LUID where index is 0. */
static bool find(uint32_t index, ULONG64 luid, struct os_interface *out)
{
    int (*list)(struct os_interface *, unsigned) =
        __atomic_load_n(&interface_list, __ATOMIC_ACQUIRE);
    int count = list(NULL, 0);
    struct os_interface *all = count > 0 ? calloc((size_t)count, sizeof *all) : NULL;
    bool found = false;
    int now = all ? list(all, (unsigned)count) : 0;

    for (int i = 0; i < now && i < count && !found; i++) {
        found = index ? all[i].index == index : luid_of(&all[i]).Value == luid;
        if (found)
            *out = all[i];
    }
    free(all);
    return found && !RED("nt-interface-not-found");
}

/* A name in NT's form, to be freed; NULL without memory. */
static WCHAR *wide_name(const struct os_interface *i, size_t *units)
{
    return nt_utf16_of_utf8(i->name, strlen(i->name), units);
}

NETIOAPI_API ConvertInterfaceIndexToLuid(NET_IFINDEX InterfaceIndex, PNET_LUID InterfaceLuid)
{
    struct os_interface found;

    (void)nt_irql_at_most(PASSIVE_LEVEL, "ConvertInterfaceIndexToLuid", NT_CALLER);
    if (!InterfaceLuid)
        return STATUS_INVALID_PARAMETER;
    InterfaceLuid->Value = 0;
    if (InterfaceIndex == 0 || !find(InterfaceIndex, 0, &found))
        return STATUS_INVALID_PARAMETER;
    *InterfaceLuid = luid_of(&found);
    return STATUS_SUCCESS;
}

NETIOAPI_API ConvertInterfaceLuidToAlias(const NET_LUID *InterfaceLuid, PWSTR InterfaceAlias,
                                         SIZE_T Length)
{
    struct os_interface found;
    WCHAR *name;
    size_t units;

    (void)nt_irql_at_most(PASSIVE_LEVEL, "ConvertInterfaceLuidToAlias", NT_CALLER);
    if (!InterfaceLuid || !InterfaceAlias || InterfaceLuid->Value == 0 ||
        !find(0, InterfaceLuid->Value, &found))
        return STATUS_INVALID_PARAMETER;
    name = wide_name(&found, &units);
    if (name && units < Length)
        memcpy(InterfaceAlias, name, (units + 1) * sizeof *name);
    else
        units = Length;
    free(name);
    return units < Length ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

/* A GUID that is the interface's for as long as its index. */
static GUID guid_of(const struct os_interface *i)
{
    return (GUID){
        .Data1 = i->index,
        .Data2 = 0x4e44,
        .Data3 = 0x4b00,
        .Data4 = {0x80, 0, 's', 'o', 'f', 't', 'i', 'f'},
    };
}

NETIOAPI_API GetIfEntry2(PMIB_IF_ROW2 Row)
{
    static const uint8_t none[6];
    struct os_interface found;
    WCHAR *name;
    size_t units;

    (void)nt_irql_at_most(PASSIVE_LEVEL, "GetIfEntry2", NT_CALLER);
    if (!Row || (Row->InterfaceLuid.Value == 0 && Row->InterfaceIndex == 0))
        return STATUS_INVALID_PARAMETER;
    if (!find(Row->InterfaceLuid.Value ? 0 : Row->InterfaceIndex, Row->InterfaceLuid.Value, &found))
        return STATUS_NOT_FOUND;
    name = wide_name(&found, &units);
    if (!name)
        return STATUS_NO_MEMORY;
    *Row = (MIB_IF_ROW2){
        .InterfaceLuid = luid_of(&found),
        .InterfaceIndex = found.index,
        .InterfaceGuid = guid_of(&found),
        .Mtu = found.mtu,
        .Type = found.loopback ? IF_TYPE_SOFTWARE_LOOPBACK : IF_TYPE_ETHERNET_CSMACD,
        .MediaType = found.loopback ? NdisMediumLoopback : NdisMedium802_3,
        .PhysicalMediumType =
            found.loopback ? NdisPhysicalMediumUnspecified : NdisPhysicalMedium802_3,
        .AccessType = found.loopback ? NET_IF_ACCESS_LOOPBACK : NET_IF_ACCESS_BROADCAST,
        .OperStatus = found.up ? IfOperStatusUp : IfOperStatusDown,
        .AdminStatus = found.up ? NET_IF_ADMIN_STATUS_UP : NET_IF_ADMIN_STATUS_DOWN,
        .MediaConnectState = found.up ? MediaConnectStateConnected : MediaConnectStateDisconnected,
        .ConnectionType = NET_IF_CONNECTION_DEDICATED,
    };
    memcpy(Row->Alias, name, (units + 1) * sizeof *name);
    memcpy(Row->Description, name, (units + 1) * sizeof *name);
    free(name);
    if (memcmp(found.mac, none, sizeof none) != 0) {
        Row->PhysicalAddressLength = sizeof found.mac;
        memcpy(Row->PhysicalAddress, found.mac, sizeof found.mac);
        memcpy(Row->PermanentPhysicalAddress, found.mac, sizeof found.mac);
    }
    return STATUS_SUCCESS;
}
