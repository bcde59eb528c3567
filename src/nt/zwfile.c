// SPDX-License-Identifier: MIT
/*
 * The file calls of drivers: opening, making, writing. PASSIVE_LEVEL.
 *
 * Who shares a file with whom is kept here, for this process; the host knows no such thing. The
 * list of open files and their positions are under one lock, which is held over the host's calls,
 * so that two writers who append never overwrite each other.
 */
#include "nt/zwfile.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/red.h"
#include "nt/handle.h"
#include "nt/nt.h"
#include "os/os.h"

struct file_object {
    struct nt_object object; /* first */
    struct file_object *next;
    struct os_file_info info;
    int fd; /* < 0: a directory */
    ACCESS_MASK access;
    ULONG share;
    bool synchronous;
    int64_t position; /* octets */
    char host[OS_PATH_MAX];
};

static os_mutex lock = OS_MUTEX_INITIALIZER;
static struct file_object *open_files;

static void file_destroy(struct nt_object *object)
{
    struct file_object *file = (struct file_object *)object, **at = &open_files;

    os_mutex_lock(&lock);
    while (*at && *at != file)
        at = &(*at)->next;
    if (*at)
        *at = file->next;
    os_mutex_unlock(&lock);
    if (file->fd >= 0)
        os_file_close(file->fd);
    free(file);
}

static NTSTATUS status_of(int rc)
{
    switch (-rc) {
    case 0:
        return STATUS_SUCCESS;
    case ENOENT:
        return STATUS_OBJECT_NAME_NOT_FOUND;
    case EEXIST:
        return STATUS_OBJECT_NAME_COLLISION;
    case ENOTDIR:
        return STATUS_OBJECT_PATH_NOT_FOUND;
    case EISDIR:
        return STATUS_FILE_IS_A_DIRECTORY;
    case EACCES:
    case EPERM:
    case EROFS:
        return STATUS_ACCESS_DENIED;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return STATUS_DISK_FULL;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return STATUS_INSUFFICIENT_RESOURCES;
    default:
        return STATUS_IO_DEVICE_ERROR;
    }
}

static ACCESS_MASK granted(ACCESS_MASK desired)
{
    ACCESS_MASK access = desired & 0x0fffffff;

    if (desired & (MAXIMUM_ALLOWED | GENERIC_ALL))
        access |= FILE_ALL_ACCESS;
    if (desired & GENERIC_READ)
        access |= FILE_GENERIC_READ;
    if (desired & GENERIC_WRITE)
        access |= FILE_GENERIC_WRITE;
    return access;
}

/* What opens share: reading, writing, deleting, as FILE_SHARE_ bits. */
static ULONG uses_of(ACCESS_MASK access)
{
    ULONG uses = 0;

    if (access & (FILE_READ_DATA | FILE_EXECUTE))
        uses |= FILE_SHARE_READ;
    if (access & (FILE_WRITE_DATA | FILE_APPEND_DATA))
        uses |= FILE_SHARE_WRITE;
    if (access & DELETE)
        uses |= FILE_SHARE_DELETE;
    return uses;
}

/* Whether another open of the same file excludes this one; the lock is held. */
static bool is_excluded(const struct file_object *file)
{
    for (const struct file_object *o = open_files; o; o = o->next) {
        bool same = o->info.volume == file->info.volume && o->info.id == file->info.id;

        if (same && !RED("nt-file-share-ignored") &&
            ((uses_of(file->access) & ~o->share) || (uses_of(o->access) & ~file->share)) &&
            uses_of(file->access) && uses_of(o->access))
            return true;
    }
    return false;
}

struct opening {
    ULONG disposition, options;
    const struct nt_path *path;
    ULONG_PTR did; /* FILE_OPENED and so on */
};

/* What the disposition makes of a file that exists, or does not. */
static NTSTATUS disposition_check(struct opening *o)
{
    static const struct {
        UCHAR exists, missing; /* what is done; FILE_EXISTS, FILE_DOES_NOT_EXIST: it fails */
    } table[] = {
        [FILE_SUPERSEDE] = {FILE_SUPERSEDED, FILE_CREATED},
        [FILE_OPEN] = {FILE_OPENED, FILE_DOES_NOT_EXIST},
        [FILE_CREATE] = {FILE_EXISTS, FILE_CREATED},
        [FILE_OPEN_IF] = {FILE_OPENED, FILE_CREATED},
        [FILE_OVERWRITE] = {FILE_OVERWRITTEN, FILE_DOES_NOT_EXIST},
        [FILE_OVERWRITE_IF] = {FILE_OVERWRITTEN, FILE_CREATED},
    };

    if (o->disposition >= sizeof table / sizeof table[0])
        return STATUS_INVALID_PARAMETER;
    o->did = o->path->exists ? table[o->disposition].exists : table[o->disposition].missing;
    if (o->did == FILE_EXISTS)
        return STATUS_OBJECT_NAME_COLLISION;
    if (o->did == FILE_DOES_NOT_EXIST)
        return STATUS_OBJECT_NAME_NOT_FOUND;
    return STATUS_SUCCESS;
}

static NTSTATUS options_check(ULONG options, ACCESS_MASK access)
{
    ULONG sync = options & (FILE_SYNCHRONOUS_IO_ALERT | FILE_SYNCHRONOUS_IO_NONALERT);
    ULONG kind = options & (FILE_DIRECTORY_FILE | FILE_NON_DIRECTORY_FILE);

    if (kind == (FILE_DIRECTORY_FILE | FILE_NON_DIRECTORY_FILE) ||
        sync == (FILE_SYNCHRONOUS_IO_ALERT | FILE_SYNCHRONOUS_IO_NONALERT) ||
        (sync && !(access & SYNCHRONIZE)))
        return STATUS_INVALID_PARAMETER;
    return STATUS_SUCCESS;
}

static NTSTATUS open_directory(struct file_object *file, const struct opening *o)
{
    int rc = o->path->exists ? 0 : os_dir_make(file->host);

    if (rc == 0)
        rc = os_file_info(file->host, &file->info);
    if (rc < 0)
        return status_of(rc);
    return file->info.directory ? STATUS_SUCCESS : STATUS_NOT_A_DIRECTORY;
}

/* Opens the file on the host; the lock is held. */
static NTSTATUS open_file(struct file_object *file, const struct opening *o)
{
    unsigned flags = o->path->exists ? 0 : OS_FILE_CREATE;
    bool empties = o->did == FILE_OVERWRITTEN || o->did == FILE_SUPERSEDED;
    int rc = o->path->exists ? os_file_info(file->host, &file->info) : 0;

    if (rc < 0)
        return status_of(rc);
    if (o->path->exists && file->info.directory) {
        if (o->options & FILE_NON_DIRECTORY_FILE)
            return STATUS_FILE_IS_A_DIRECTORY;
        return empties ? STATUS_OBJECT_NAME_COLLISION : STATUS_SUCCESS;
    }
    if (o->path->exists && is_excluded(file))
        return STATUS_SHARING_VIOLATION;
    if (empties || (file->access & (FILE_WRITE_DATA | FILE_APPEND_DATA)))
        flags |= OS_FILE_WRITE;
    if ((file->access & FILE_READ_DATA) || !(flags & OS_FILE_WRITE))
        flags |= OS_FILE_READ;
    file->fd = os_file_open(file->host, flags);
    if (file->fd < 0)
        return status_of(file->fd);
    rc = empties ? os_file_truncate(file->fd) : 0;
    if (rc == 0)
        rc = os_file_info(file->host, &file->info);
    return status_of(rc);
}

static void file_enter(struct file_object *file)
{
    file->next = open_files;
    open_files = file;
}

/* The host directory that a root directory stands for; NULL and a status when it is none. */
static NTSTATUS root_of(HANDLE root, char host[OS_PATH_MAX], const void *caller)
{
    struct nt_object *object;
    NTSTATUS status = nt_handle_get(root, NT_OBJECT_FILE, 0, &object, "ZwCreateFile", caller);

    if (status != STATUS_SUCCESS)
        return status;
    strcpy(host, ((struct file_object *)object)->host);
    nt_object_release(object, "ZwCreateFile", caller);
    return STATUS_SUCCESS;
}

static NTSTATUS find_path(POBJECT_ATTRIBUTES attributes, struct nt_path *path, const void *caller)
{
    char root[OS_PATH_MAX];
    struct nt_name name;
    NTSTATUS status = nt_name_of(attributes, &name);

    if (status != STATUS_SUCCESS)
        return status;
    if (!attributes->RootDirectory)
        return nt_path_of(NULL, name, path);
    status = root_of(attributes->RootDirectory, root, caller);
    return status == STATUS_SUCCESS ? nt_path_of(root, name, path) : status;
}

static NTSTATUS make_object(struct opening *o, ACCESS_MASK access, ULONG share,
                            struct file_object **out)
{
    struct file_object *file = calloc(1, sizeof *file);
    NTSTATUS status;

    if (!file)
        return STATUS_INSUFFICIENT_RESOURCES;
    nt_object_init(&file->object, NT_OBJECT_FILE, file_destroy);
    file->fd = -1;
    file->access = access;
    file->share = share;
    file->synchronous =
        (o->options & (FILE_SYNCHRONOUS_IO_ALERT | FILE_SYNCHRONOUS_IO_NONALERT)) != 0;
    strcpy(file->host, o->path->host);
    os_mutex_lock(&lock);
    status = o->options & FILE_DIRECTORY_FILE ? open_directory(file, o) : open_file(file, o);
    if (status == STATUS_SUCCESS)
        file_enter(file);
    os_mutex_unlock(&lock);
    if (status != STATUS_SUCCESS) {
        file_destroy(&file->object);
        return status;
    }
    *out = file;
    return STATUS_SUCCESS;
}

NTSTATUS ZwCreateFile(PHANDLE FileHandle, ACCESS_MASK DesiredAccess,
                      POBJECT_ATTRIBUTES ObjectAttributes, PIO_STATUS_BLOCK IoStatusBlock,
                      PLARGE_INTEGER AllocationSize, ULONG FileAttributes, ULONG ShareAccess,
                      ULONG CreateDisposition, ULONG CreateOptions, PVOID EaBuffer, ULONG EaLength)
{
    ACCESS_MASK access = granted(DesiredAccess);
    struct file_object *file = NULL;
    struct nt_path path;
    struct opening o = {
        .disposition = CreateDisposition,
        .options = CreateOptions,
        .path = &path,
    };
    NTSTATUS status;

    (void)AllocationSize;
    (void)FileAttributes;
    (void)EaBuffer;
    (void)EaLength;
    (void)nt_irql_at_most(PASSIVE_LEVEL, "ZwCreateFile", NT_CALLER);
    status = options_check(CreateOptions, access);
    if (status == STATUS_SUCCESS)
        status = find_path(ObjectAttributes, &path, NT_CALLER);
    if (status == STATUS_SUCCESS)
        status = disposition_check(&o);
    if (status == STATUS_SUCCESS)
        status = make_object(&o, access, ShareAccess, &file);
    if (status == STATUS_SUCCESS) {
        log_info("ZwCreateFile: %s", path.host);
        *FileHandle = nt_handle_open(&file->object, access, NT_CALLER);
        if (!*FileHandle) {
            nt_object_release(&file->object, "ZwCreateFile", NT_CALLER);
            status = STATUS_INSUFFICIENT_RESOURCES;
        }
    }
    if (IoStatusBlock) {
        IoStatusBlock->Status = status;
        IoStatusBlock->Information = o.did;
    }
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Where to write: an offset, -1 for the end, or a status. */
static NTSTATUS where_to(const struct file_object *file, const LARGE_INTEGER *offset, int64_t *at)
{
    bool append_only = !(file->access & FILE_WRITE_DATA);
    bool current =
        !offset || (offset->HighPart == -1 && offset->LowPart == FILE_USE_FILE_POINTER_POSITION);

    if (append_only ||
        (offset && offset->HighPart == -1 && offset->LowPart == FILE_WRITE_TO_END_OF_FILE)) {
        *at = -1;
        return STATUS_SUCCESS;
    }
    if (current && !file->synchronous)
        return STATUS_INVALID_PARAMETER;
    *at = current ? file->position : offset->QuadPart;
    return *at < 0 ? STATUS_INVALID_PARAMETER : STATUS_SUCCESS;
}

/* The lock is held: the end of the file, and the position, stay while the octets are written. */
static NTSTATUS write_octets(struct file_object *file, const void *buffer, ULONG length,
                             const LARGE_INTEGER *offset)
{
    int64_t at;
    NTSTATUS status = where_to(file, offset, &at);

    if (status != STATUS_SUCCESS)
        return status;
    if (at < 0)
        at = os_file_size(file->fd);
    if (at >= 0)
        status = status_of(os_file_write(file->fd, buffer, length, at));
    else
        status = status_of((int)at);
    if (status == STATUS_SUCCESS)
        file->position = at + length;
    return status;
}

NTSTATUS ZwWriteFile(HANDLE FileHandle, HANDLE Event, PIO_APC_ROUTINE ApcRoutine, PVOID ApcContext,
                     PIO_STATUS_BLOCK IoStatusBlock, PVOID Buffer, ULONG Length,
                     PLARGE_INTEGER ByteOffset, PULONG Key)
{
    struct nt_object *object;
    struct file_object *file;
    NTSTATUS status;

    (void)ApcContext;
    (void)Key;
    (void)nt_irql_at_most(PASSIVE_LEVEL, "ZwWriteFile", NT_CALLER);
    if (ApcRoutine)
        nt_finding_from(NT_CALLER,
                        "ZwWriteFile: there are no APCs here, the routine is not called");
    if (Event)
        return STATUS_INVALID_HANDLE; /* nothing here makes handles to events */
    status = nt_handle_get(FileHandle, NT_OBJECT_FILE, 0, &object, "ZwWriteFile", NT_CALLER);
    if (status != STATUS_SUCCESS)
        return status;
    file = (struct file_object *)object;
    if (!(file->access & (FILE_WRITE_DATA | FILE_APPEND_DATA))) {
        status = STATUS_ACCESS_DENIED;
    } else if (file->fd < 0) {
        status = STATUS_INVALID_DEVICE_REQUEST;
    } else {
        os_mutex_lock(&lock);
        status = write_octets(file, Buffer, Length, ByteOffset);
        os_mutex_unlock(&lock);
    }
    nt_object_release(object, "ZwWriteFile", NT_CALLER);
    if (IoStatusBlock) {
        IoStatusBlock->Status = status;
        IoStatusBlock->Information = status == STATUS_SUCCESS ? Length : 0;
    }
    return status;
}
