// SPDX-License-Identifier: MIT
/* See config.h. One pass, a line at a time. */
#include "base/config.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/red.h"

/* ---- words ---------------------------------------------------------------------------------- */

static struct config_word trimmed(struct config_word word)
{
    while (word.length && (*word.text == ' ' || *word.text == '\t')) {
        word.text++;
        word.length--;
    }
    while (word.length && (word.text[word.length - 1] == ' ' || word.text[word.length - 1] == '\t'))
        word.length--;
    return word;
}

/* The position of the first c, outside quotes where the reader knows them; the length: none. Says
 * whether the end is inside quotes. */
static size_t find_outside(struct config_word word, char c, bool quotes, bool *open)
{
    bool inside = false;
    size_t i;

    for (i = 0; i < word.length; i++) {
        if (inside && word.text[i] == '\\' && i + 1 < word.length)
            i++;
        else if (quotes && word.text[i] == '"')
            inside = !inside;
        else if (!inside && word.text[i] == c)
            break;
    }
    if (open)
        *open = inside;
    return i < word.length ? i : word.length;
}

static bool split(struct config_word whole, char at, bool quotes, struct config_word *left,
                  struct config_word *right)
{
    size_t position = find_outside(whole, at, quotes, NULL);

    if (position == whole.length)
        return false;
    *left = trimmed((struct config_word){whole.text, position});
    *right = trimmed((struct config_word){whole.text + position + 1, whole.length - position - 1});
    return true;
}

bool config_split(struct config_word whole, char at, struct config_word *left,
                  struct config_word *right)
{
    return split(whole, at, true, left, right);
}

bool config_word_is(struct config_word word, const char *text)
{
    return word.length == strlen(text) && memcmp(word.text, text, word.length) == 0;
}

/* ---- sentences ------------------------------------------------------------------------------ */

bool config_wrong(struct config_reader *r, const char *format, ...)
{
    size_t used = (size_t)snprintf(r->error, r->size, "%s:%u: ", r->where, r->line);
    va_list ap;

    va_start(ap, format);
    if (used < r->size)
        vsnprintf(r->error + used, r->size - used, format, ap);
    va_end(ap);
    return false;
}

bool config_text(struct config_reader *r, struct config_word value, char *out, size_t size)
{
    size_t used = 0, i = 0;

    if (value.length == 0 || value.text[0] != '"') {
        if (value.length >= size)
            return config_wrong(r, "the text is too long (have %zu octets, need <= %zu)",
                                value.length, size - 1);
        memcpy(out, value.text, value.length);
        out[value.length] = '\0';
        return true;
    }
    for (i = 1; i < value.length && value.text[i] != '"'; i++) {
        if (value.text[i] == '\\' && i + 1 < value.length &&
            (value.text[i + 1] == '"' || value.text[i + 1] == '\\'))
            i++;
        if (used + 1 >= size)
            return config_wrong(r, "the text is too long (need <= %zu octets)", size - 1);
        out[used++] = value.text[i];
    }
    out[used] = '\0';
    if (i + 1 != value.length)
        return config_wrong(r, "there is something behind the text in quotes");
    return true;
}

/* ---- octets --------------------------------------------------------------------------------- */

/* How long the sequence is that begins here; 0: no UTF-8, or a control character. */
static size_t utf8_octets(const unsigned char *at, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t need = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    uint32_t code = at[0] & (0xffu >> (need + 1));

    if (at[0] < 0xc2 || at[0] > 0xf4 || need > left)
        return 0;
    for (size_t i = 1; i < need; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    return code < least[need] || code < 0xa0 || code > 0x10ffff || (code >> 11) == 0x1b ? 0 : need;
}

/* Octets that no setting has, and that no message should carry to a terminal. setting: how many
 * octets come before the comment. */
static bool check_octets(struct config_reader *r, struct config_word line, size_t setting)
{
    const unsigned char *octets = (const unsigned char *)line.text;
    bool inside = false;

    if (line.length > r->line_max)
        return config_wrong(r, "the line is too long (have %zu octets, need <= %zu)", line.length,
                            r->line_max);
    for (size_t i = 0; i < line.length; i++) {
        unsigned char c = octets[i];
        size_t more;

        if (i < setting && inside && c >= 0x80) {
            more = utf8_octets(octets + i, setting - i);
            if (more) {
                i += more - 1;
                continue;
            }
        }
        if (c == '\0' || (i < setting && c != '\t' && (c < 0x20 || c > 0x7e)))
            return config_wrong(r, "octet 0x%02x in column %zu (need printable ASCII%s)", c, i + 1,
                                inside ? " or UTF-8" : "");
        if (inside && c == '\\' && i + 1 < setting && (octets[i + 1] == '"' || octets[i + 1] == c))
            i++;
        else if (r->quotes && c == '"' && i < setting)
            inside = !inside;
    }
    return true;
}

/* ---- lines ---------------------------------------------------------------------------------- */

/* The next line without its end; false behind the last. */
static bool next_line(const char **at, const char *end, struct config_word *line)
{
    const char *stop;

    if (*at == end)
        return false;
    line->text = *at;
    stop = memchr(*at, '\n', (size_t)(end - *at));
    *at = stop ? stop + 1 : end;
    if (!stop)
        stop = end;
    if (stop > line->text && stop[-1] == '\r')
        stop--;
    line->length = (size_t)(stop - line->text);
    return true;
}

static bool read_line(struct config_reader *r, struct config_word line)
{
    struct config_word setting, key, value;
    bool open;

    setting.text = line.text;
    setting.length = find_outside(line, '#', r->quotes, &open);
    setting = trimmed(setting);
    if (!check_octets(r, line, (size_t)(setting.text - line.text) + setting.length))
        return false;
    if (setting.length == 0)
        return true;
    if (open)
        return config_wrong(r, "a quote is not closed");
    if (r->section && setting.text[0] == '[') {
        if (setting.text[setting.length - 1] != ']' || setting.length < 3)
            return config_wrong(r, "have \"%.*s\", need [section]", (int)setting.length,
                                setting.text);
        setting.text++;
        setting.length -= 2;
        return r->section(r, trimmed(setting));
    }
    if (!split(setting, '=', r->quotes, &key, &value))
        return config_wrong(r, "have \"%.*s\", need key = value", (int)setting.length,
                            setting.text);
    return r->setting(r, key, value);
}

bool config_read(struct config_reader *r, const char *text, size_t length)
{
    const char *at = text, *end = text + length;
    struct config_word line;

    r->line = 0;
    if (length > r->text_max)
        return config_wrong(r, "the text is too long (have %zu octets, need <= %zu)", length,
                            r->text_max);
    if (r->section && length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        at += 3;
    while (next_line(&at, end, &line)) {
        if (!RED("config-lines-not-counted"))
            r->line++;
        if (!read_line(r, line))
            return false;
    }
    return true;
}
