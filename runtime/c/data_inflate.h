/* Unpacks gzip (RFC 1951 and 1952), so that a model that reads packed arrays needs no library. */
#ifndef GP_DATA_INFLATE_H
#define GP_DATA_INFLATE_H

#include "data_prepare.h"

enum { GP_FLATE_WINDOW = 32768, GP_FLATE_INPUT = 16384, GP_FLATE_FAST = 10, GP_FLATE_BITS = 15 };

/* A canonical Huffman code: symbols in order of their codes, and a table for the short ones. */
typedef struct {
    uint16_t count[GP_FLATE_BITS + 1]; /* codes of each length */
    uint16_t symbol[288];
    uint16_t fast[1 << GP_FLATE_FAST]; /* symbol << 4 | length; 0: longer, or none */
} gp_huffman;

typedef struct {
    int file, failed;
    uint64_t at; /* in the file: what the buffer is filled with next */
    size_t used, filled;
    uint64_t bits;
    int held; /* bits */
    uint32_t crc;
    uint64_t length; /* of what was unpacked */
    gp_writer *to;
    uint32_t crc_table[256];
    gp_huffman lengths, distances;
    unsigned char input[GP_FLATE_INPUT];
    unsigned char window[GP_FLATE_WINDOW];
} gp_inflater;
typedef char gp_inflater_fits[GP_PREPARED_FITS(gp_inflater)];

/* ---- Bits ----------------------------------------------------------------------------------- */

GP_HOST_FAST int gp_flate_byte(gp_inflater *z)
{
    if (z->used == z->filled) {
        ssize_t n;
        do
            n = pread(z->file, z->input, sizeof z->input, (off_t)z->at);
        while (n < 0 && errno == EINTR);
        if (n <= 0) {
            z->failed = 1;
            return 0;
        }
        z->at += (uint64_t)n;
        z->used = 0;
        z->filled = (size_t)n;
    }
    return z->input[z->used++];
}

/* The next n <= 16 bits, the first as the lowest. After the end there are zeros, and a failure
 * where they are taken. */
GP_HOST_FAST unsigned gp_flate_peek(gp_inflater *z, int n)
{
    while (z->held < n) {
        z->bits |= (uint64_t)(unsigned)gp_flate_byte(z) << z->held;
        z->held += 8;
    }
    return (unsigned)(z->bits & ((UINT64_C(1) << n) - 1));
}

GP_HOST_FAST unsigned gp_flate_take(gp_inflater *z, int n)
{
    const unsigned value = gp_flate_peek(z, n);
    z->bits >>= n;
    z->held -= n;
    return value;
}

/* ---- Codes ---------------------------------------------------------------------------------- */

/* From the length of each symbol's code. False where there are more codes than lengths allow, or
 * fewer, save a single one. */
GP_HOST int gp_huffman_make(gp_huffman *h, const unsigned char *length, int symbols)
{
    unsigned offset[GP_FLATE_BITS + 2] = {0}, code = 0;
    int left = 1, used = 0;
    memset(h, 0, sizeof *h);
    for (int i = 0; i < symbols; i++)
        h->count[length[i]]++;
    used = symbols - h->count[0];
    h->count[0] = 0;
    for (int bits = 1; bits <= GP_FLATE_BITS; bits++) {
        left = 2 * left - h->count[bits];
        if (left < 0)
            return 0;
        offset[bits + 1] = offset[bits] + h->count[bits];
    }
    if (left > 0 && !(used == 1 && h->count[1] == 1) && used != 0)
        return 0;
    for (int i = 0; i < symbols; i++)
        if (length[i])
            h->symbol[offset[length[i]]++] = (uint16_t)i;
    unsigned next = 0;
    for (int bits = 1; bits <= GP_FLATE_FAST; bits++, code <<= 1)
        for (int i = 0; i < h->count[bits]; i++, code++, next++) {
            unsigned flipped = 0; /* codes stand with their first bit lowest */
            for (int b = 0; b < bits; b++)
                flipped |= (code >> b & 1) << (bits - 1 - b);
            for (; flipped < 1 << GP_FLATE_FAST; flipped += 1u << bits)
                h->fast[flipped] = (uint16_t)(h->symbol[next] << 4 | bits);
        }
    return 1;
}

/* Bit by bit, as the codes are counted. */
GP_HOST int gp_huffman_long(gp_inflater *z, const gp_huffman *h)
{
    int code = 0, first = 0, index = 0;
    for (int bits = 1; bits <= GP_FLATE_BITS; bits++) {
        code |= (int)gp_flate_take(z, 1);
        if (code - h->count[bits] < first)
            return h->symbol[index + (code - first)];
        index += h->count[bits];
        first = (first + h->count[bits]) << 1;
        code <<= 1;
    }
    z->failed = 1;
    return 0;
}

/* The next symbol. The last code of a file may be shorter than what the table is asked with. */
GP_HOST_FAST int gp_huffman_next(gp_inflater *z, const gp_huffman *h)
{
    if (z->held >= GP_FLATE_FAST || z->used < z->filled) {
        while (z->held < GP_FLATE_FAST && z->used < z->filled) {
            z->bits |= (uint64_t)z->input[z->used++] << z->held;
            z->held += 8;
        }
        const unsigned found = h->fast[z->bits & ((1 << GP_FLATE_FAST) - 1)];
        if (found && (int)(found & 15) <= z->held) {
            z->bits >>= found & 15;
            z->held -= (int)(found & 15);
            return (int)(found >> 4);
        }
    }
    return gp_huffman_long(z, h);
}

/* ---- Blocks --------------------------------------------------------------------------------- */

GP_HOST_FAST void gp_flate_flush(gp_inflater *z)
{
    const size_t whole = GP_FLATE_WINDOW;
    const size_t n = z->length % whole ? (size_t)(z->length % whole) : whole;
    for (size_t i = 0; i < n; i++)
        z->crc = z->crc_table[(z->crc ^ z->window[i]) & 255] ^ z->crc >> 8;
    gp_writer_put(z->to, z->window, n);
}

GP_HOST_FAST void gp_flate_put(gp_inflater *z, int byte)
{
    z->window[z->length++ % GP_FLATE_WINDOW] = (unsigned char)byte;
    if (z->length % GP_FLATE_WINDOW == 0)
        gp_flate_flush(z);
}

GP_HOST void gp_flate_stored(gp_inflater *z)
{
    gp_flate_take(z, z->held % 8);
    const unsigned length = gp_flate_take(z, 16), inverse = gp_flate_take(z, 16);
    if ((length ^ inverse) != 0xffff)
        z->failed = 1;
    for (unsigned i = 0; i < length && !z->failed; i++)
        gp_flate_put(z, (int)gp_flate_take(z, 8));
}

GP_HOST void gp_flate_codes(gp_inflater *z)
{
    static const uint16_t base[29] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                      15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                      67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const unsigned char more[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                           2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    while (!z->failed && !z->to->failed) {
        int symbol = gp_huffman_next(z, &z->lengths);
        if (symbol < 256) {
            gp_flate_put(z, symbol);
            continue;
        }
        symbol -= 257;
        if (symbol < 0)
            return;
        if (symbol >= 29)
            break;
        unsigned length = base[symbol] + gp_flate_take(z, more[symbol]);
        const int code = gp_huffman_next(z, &z->distances);
        if (code >= 30)
            break;
        const int extra = code < 4 ? 0 : code / 2 - 1;
        const uint64_t distance =
            (code < 4 ? (unsigned)code + 1 : ((2u + (code & 1)) << extra) + 1) +
            gp_flate_take(z, extra);
        if (distance > z->length)
            break;
        for (; length > 0; length--)
            gp_flate_put(z, z->window[(z->length - distance) % GP_FLATE_WINDOW]);
    }
    z->failed = 1;
}

/* The codes that a block brings with it. */
GP_HOST void gp_flate_read_codes(gp_inflater *z)
{
    static const unsigned char order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                            11, 4,  12, 3, 13, 2, 14, 1, 15};
    unsigned char length[320] = {0};
    const int literals = (int)gp_flate_take(z, 5) + 257, distances = (int)gp_flate_take(z, 5) + 1;
    const int codes = (int)gp_flate_take(z, 4) + 4;
    for (int i = 0; i < codes; i++)
        length[order[i]] = (unsigned char)gp_flate_take(z, 3);
    z->failed |= literals > 286 || distances > 30 || !gp_huffman_make(&z->lengths, length, 19);
    memset(length, 0, sizeof length);
    for (int i = 0; i < literals + distances && !z->failed;) {
        const int symbol = gp_huffman_next(z, &z->lengths);
        const int times = symbol < 16    ? 1
                          : symbol == 16 ? 3 + (int)gp_flate_take(z, 2)
                          : symbol == 17 ? 3 + (int)gp_flate_take(z, 3)
                                         : 11 + (int)gp_flate_take(z, 7);
        const int value = symbol < 16 ? symbol : symbol == 16 && i > 0 ? length[i - 1] : 0;
        z->failed |= (symbol == 16 && i == 0) || i + times > literals + distances;
        for (int k = 0; k < times && !z->failed; k++)
            length[i++] = (unsigned char)value;
    }
    z->failed |= length[256] == 0 || !gp_huffman_make(&z->lengths, length, literals) ||
                 !gp_huffman_make(&z->distances, length + literals, distances);
}

GP_HOST void gp_flate_fixed_codes(gp_inflater *z)
{
    unsigned char length[288];
    for (int i = 0; i < 288; i++)
        length[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    gp_huffman_make(&z->lengths, length, 288);
    memset(length, 5, 32); /* the last two are in the code, but never used */
    gp_huffman_make(&z->distances, length, 32);
}

GP_HOST void gp_flate_blocks(gp_inflater *z)
{
    int last = 0;
    while (!last && !z->failed && !z->to->failed) {
        last = (int)gp_flate_take(z, 1);
        const unsigned kind = gp_flate_take(z, 2);
        if (kind == 0) {
            gp_flate_stored(z);
        } else if (kind == 3) {
            z->failed = 1;
        } else {
            if (kind == 1)
                gp_flate_fixed_codes(z);
            else
                gp_flate_read_codes(z);
            if (!z->failed)
                gp_flate_codes(z);
        }
    }
}

/* ---- The file ------------------------------------------------------------------------------- */

/* Its header: flags, then names that nobody needs. */
GP_HOST void gp_gzip_header(gp_inflater *z)
{
    unsigned char start[10];
    for (int i = 0; i < 10; i++)
        start[i] = (unsigned char)gp_flate_byte(z);
    z->failed |= start[0] != 0x1f || start[1] != 0x8b || start[2] != 8 || start[3] & 0xe0;
    if (!z->failed && start[3] & 4)
        for (int n = gp_flate_byte(z), i = n | gp_flate_byte(z) << 8; i > 0 && !z->failed; i--)
            gp_flate_byte(z);
    for (int flag = 8; flag <= 16; flag *= 2)
        while (!z->failed && start[3] & flag && gp_flate_byte(z) != 0)
            ;
    if (!z->failed && start[3] & 2)
        gp_flate_byte(z), gp_flate_byte(z);
}

/* Unpacks one. False where it is damaged or cut short; a failure to write is the writer's. */
GP_HOST int gp_gunzip(int file, gp_inflater *z, gp_writer *to)
{
    memset(z, 0, sizeof *z);
    z->file = file;
    z->to = to;
    z->crc = 0xffffffff;
    for (uint32_t i = 0; i < 256; i++) {
        z->crc_table[i] = i;
        for (int k = 0; k < 8; k++)
            z->crc_table[i] = z->crc_table[i] >> 1 ^ (z->crc_table[i] & 1 ? 0xedb88320 : 0);
    }
    gp_gzip_header(z);
    gp_flate_blocks(z);
    if (z->failed)
        return 0;
    if (z->length % GP_FLATE_WINDOW)
        gp_flate_flush(z);
    gp_flate_take(z, z->held % 8);
    uint32_t crc = gp_flate_take(z, 16), length;
    crc |= gp_flate_take(z, 16) << 16;
    length = gp_flate_take(z, 16);
    length |= gp_flate_take(z, 16) << 16;
    return !z->failed && crc == (z->crc ^ 0xffffffff) && length == (uint32_t)z->length;
}

#endif
