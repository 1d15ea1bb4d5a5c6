/* What GPUs an object has code for: fatbin OBJECT
 * Prints sm_75 for code and compute_120 for PTX, one a line. cuobjdump would say it too, where it
 * is installed. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <set>
#include <string>
#include <vector>

typedef std::set<std::string> Names;

static std::vector<unsigned char> bytes_of(const char *path)
{
    std::vector<unsigned char> bytes;
    FILE *file = fopen(path, "rb");
    int c;
    while (file && (c = getc(file)) != EOF)
        bytes.push_back((unsigned char)c);
    if (file)
        fclose(file);
    return bytes;
}

template <class T> static T read(const std::vector<unsigned char> &bytes, size_t at)
{
    T value = 0;
    if (at <= bytes.size() && sizeof value <= bytes.size() - at)
        memcpy(&value, &bytes[at], sizeof value);
    return value;
}

/* A part: magic, version and length of this header, bytes that follow; then entries: kind (1: PTX,
 * 2: code), length of its header, of its data, and 28 bytes in the number of the architecture. */
static Names names_of(const std::vector<unsigned char> &bytes, size_t part)
{
    Names names;
    size_t at = part + read<uint16_t>(bytes, part + 6);
    const size_t end = at + read<uint64_t>(bytes, part + 8);
    while (at < end && end <= bytes.size()) {
        const bool is_ptx = read<uint16_t>(bytes, at) == 1;
        names.insert((is_ptx ? "compute_" : "sm_") +
                     std::to_string(read<uint32_t>(bytes, at + 28)));
        at += read<uint32_t>(bytes, at + 4) + read<uint64_t>(bytes, at + 8);
    }
    return names;
}

int main(int argc, char **argv)
{
    const std::vector<unsigned char> bytes = bytes_of(argc == 2 ? argv[1] : "");
    size_t at = 0;
    while (at < bytes.size() && read<uint32_t>(bytes, at) != 0xba55ed50)
        at += 8;
    const Names names = names_of(bytes, at);
    for (const std::string &name : names)
        puts(name.c_str());
    return names.empty();
}
