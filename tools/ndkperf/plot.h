// SPDX-License-Identifier: MIT
/*
 * A drawing of the results, as SVG: over the sizes the average rate or the typical latency; for one
 * size the histogram of the times (bw and rate: of what a message took on average, slice by slice).
 */
#ifndef SOFTNDK_NDKPERF_PLOT_H
#define SOFTNDK_NDKPERF_PLOT_H

#include <stdbool.h>

#include "histogram.h"

#define PLOT_POINTS_MAX 32

struct plot {
    unsigned count;
    struct plot_point {
        double x, y;
    } points[PLOT_POINTS_MAX];
};

/* Further points are left out when it is full. */
void plot_add(struct plot *plot, double x, double y);

/* Both write the file anew. x is logarithmic, y begins at 0. False: errno says why not. */
bool plot_curve(const char *path, const struct plot *plot, const char *title, const char *x_name,
                const char *y_name);
/* scale: units of the axis in a nanosecond. */
bool plot_histogram(const char *path, const struct histogram *times, double scale,
                    const char *title, const char *x_name);

#endif
