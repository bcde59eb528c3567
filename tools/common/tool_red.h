/* SPDX-License-Identifier: MIT */
/*
 * RED() for the programs' own units that have tests: src/base/red.h in a red build, which links
 * them with the static library, and nothing in every other one. Programs see only include/
 * otherwise.
 */
#ifndef SOFTNDK_TOOL_RED_H
#define SOFTNDK_TOOL_RED_H

#if defined(SOFTNDK_RED) && SOFTNDK_RED
#include "base/red.h"
#else
#define RED(name) (0 && sizeof("" name))
#endif

#endif
