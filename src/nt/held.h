// SPDX-License-Identifier: MIT
/*
 * held.h - which spin locks are held, by which thread, taken from where: for softndk_report(), and
 * for a thread that ends with one. Each thread writes a record of its own, which costs two stores
 * a lock; only reports read those of others.
 */
#ifndef SOFTNDK_NT_HELD_H
#define SOFTNDK_NT_HELD_H

/* The calling thread took the lock, or gives it back. Of more than eight at a time the later ones
 * are not recorded. caller: a return address. */
void nt_held_add(const void *lock, const void *caller);
void nt_held_drop(const void *lock);

#endif /* SOFTNDK_NT_HELD_H */
