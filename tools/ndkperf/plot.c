// SPDX-License-Identifier: MIT
/* See plot.h. No state but the file being written. */
#include "plot.h"

#include <math.h>
#include <stdio.h>

#define WIDTH  800.0
#define HEIGHT 480.0
#define LEFT   90.0
#define RIGHT  20.0
#define TOP    50.0
#define BOTTOM 60.0
#define BARS   60
#define INK    "#1a1a1a"
#define PAINT  "#2868b0"
#define FAINT  "#d8d8d8"

void plot_add(struct plot *plot, double x, double y)
{
    if (plot->count < PLOT_POINTS_MAX)
        plot->points[plot->count++] = (struct plot_point){x, y};
}

/* ---- the sheet ---- */

static void put_text(FILE *out, double x, double y, const char *anchor, int size, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\">", x, y, anchor,
            size);
    for (; *text; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        default:
            if ((unsigned char)*text >= ' ')
                fputc(*text, out);
        }
    }
    fputs("</text>\n", out);
}

static FILE *begin_sheet(const char *path, const char *title, const char *x_name,
                         const char *y_name)
{
    FILE *out = fopen(path, "w");

    if (!out)
        return NULL;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" fill=\"" INK "\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    put_text(out, WIDTH / 2, TOP / 2, "middle", 15, title);
    put_text(out, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, "middle", 13, x_name);
    put_text(out, 10, TOP - 10, "start", 13, y_name);
    return out;
}

static bool end_sheet(FILE *out)
{
    bool good;

    fprintf(out, "<path d=\"M%.1f %.1fV%.1fH%.1f\" fill=\"none\" stroke=\"" INK "\"/>\n</svg>\n",
            LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT);
    good = !ferror(out);
    return fclose(out) == 0 && good;
}

/* A round number at or above a value: 1, 2 or 5 times a power of ten. */
static double round_up(double value)
{
    double power, part;

    if (!(value > 0))
        return 1;
    power = pow(10, floor(log10(value)));
    part = value / power;
    return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

static double y_of(double value, double top)
{
    return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);
}

static void put_y_axis(FILE *out, double top)
{
    char text[32];

    for (int i = 0; i <= 5; i++) {
        double value = top * i / 5, y = y_of(value, top);

        fprintf(out, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"" FAINT "\"/>\n", LEFT, y,
                WIDTH - RIGHT);
        snprintf(text, sizeof(text), "%.4g", value);
        put_text(out, LEFT - 6, y + 4, "end", 12, text);
    }
}

/* "64", "4K", "1M" */
static void name_size(double size, char text[16])
{
    if (size >= 1 << 20)
        snprintf(text, 16, "%.4gM", size / (1 << 20));
    else if (size >= 1 << 10)
        snprintf(text, 16, "%.4gK", size / (1 << 10));
    else
        snprintf(text, 16, "%.4g", size);
}

/* ---- the drawings ---- */

bool plot_curve(const char *path, const struct plot *plot, const char *title, const char *x_name,
                const char *y_name)
{
    FILE *out = begin_sheet(path, title, x_name, y_name);
    double first = plot->points[0].x, last = plot->points[0].x, top = 0, span;
    char text[16];

    if (!out)
        return false;
    for (unsigned i = 0; i < plot->count; i++) {
        first = fmin(first, plot->points[i].x);
        last = fmax(last, plot->points[i].x);
        top = fmax(top, plot->points[i].y);
    }
    top = round_up(top);
    span = log2(last) - log2(first);
    put_y_axis(out, top);
    fputs("<polyline fill=\"none\" stroke=\"" PAINT "\" stroke-width=\"2\" points=\"", out);
    for (int turn = 0; turn < 2; turn++) { /* the line, then what is on it */
        for (unsigned i = 0; i < plot->count; i++) {
            double along = span > 0 ? (log2(plot->points[i].x) - log2(first)) / span : 0.5;
            double x = LEFT + along * (WIDTH - LEFT - RIGHT), y = y_of(plot->points[i].y, top);

            if (turn == 0) {
                fprintf(out, "%.1f,%.1f ", x, y);
                continue;
            }
            fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"" PAINT "\"/>\n", x, y);
            name_size(plot->points[i].x, text);
            put_text(out, x, HEIGHT - BOTTOM + 18, "middle", 11, text);
        }
        if (turn == 0)
            fputs("\"/>\n", out);
    }
    return end_sheet(out);
}

bool plot_histogram(const char *path, const struct histogram *times, double scale,
                    const char *title, const char *x_name)
{
    /* The last permille would leave no room for the rest. */
    double low = (double)times->least, high = (double)histogram_percentile(times, 0.999);
    double heights[BARS] = {0}, top = 0, bar = (WIDTH - LEFT - RIGHT) / BARS;
    FILE *out = begin_sheet(path, title, x_name, "share [%]");
    char text[32];

    if (!out)
        return false;
    if (high <= low)
        high = low + 1;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        double middle = ((double)histogram_low(i) + (double)histogram_high(i)) / 2;
        int at = (int)fmax(0, fmin(BARS - 1, (middle - low) / (high - low) * BARS));

        if (times->buckets[i] > 0 && middle <= high)
            heights[at] += 100.0 * (double)times->buckets[i] / (double)times->count;
    }
    for (int i = 0; i < BARS; i++)
        top = fmax(top, heights[i]);
    top = round_up(top);
    put_y_axis(out, top);
    for (int i = 0; i < BARS; i++)
        fprintf(out,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"" PAINT "\"/>\n",
                LEFT + i * bar, y_of(heights[i], top), bar - 1,
                HEIGHT - BOTTOM - y_of(heights[i], top));
    for (int i = 0; i <= 6; i++) {
        snprintf(text, sizeof(text), "%.4g", (low + (high - low) * i / 6) * scale);
        put_text(out, LEFT + (WIDTH - LEFT - RIGHT) * i / 6, HEIGHT - BOTTOM + 18, "middle", 12,
                 text);
    }
    return end_sheet(out);
}
