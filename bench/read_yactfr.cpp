/* SPDX-License-Identifier: Apache-2.0
 *
 * read_yactfr THREADS TRACE: what yactfr takes for a trace, each element's value used, streams not merged. Threads
 * share the packets. Prints one line of JSON, as read_babeltrace.c does.
 *
 * yactfr hands out more than events' fields (headers, begins and ends): those are stepped over, as is its way.
 */
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>
#include <yactfr/yactfr.hpp>

using yactfr::Element;

namespace
{

constexpr std::size_t packetsPerPart = 4;

struct Sums {
    std::uint64_t events = 0, numbers = 0, text = 0, times = 0;

    void add(const Sums& other)
    {
        events += other.events;
        numbers += other.numbers;
        text += other.text;
        times += other.times;
    }
};

struct File {
    explicit File(const std::string& path, const yactfr::TraceType& type) :
        factory {path, boost::none, yactfr::MemoryMappedFileViewFactory::AccessPattern::Sequential},
        elements {type, factory}
    {
    }

    yactfr::MemoryMappedFileViewFactory factory;
    yactfr::ElementSequence elements;
};

/* Some packets of a file, from one offset to another. */
struct Part {
    File *file;
    yactfr::Index begin, end;
};

class Reader
{
public:
    explicit Reader(const std::int64_t offset) : _offset {offset}
    {
    }

    void read(const Part& part)
    {
        auto it = part.file->elements.at(part.begin);
        const auto end = part.file->elements.end();

        while (it != end && !(it->kind() == Element::Kind::PacketBeginning && it.offset() / 8 >= part.end)) {
            take(*it);
            ++it;
        }
    }

    Sums sums;

private:
    void take(const Element& e)
    {
        switch (e.kind()) {
        case Element::Kind::FixedLengthUnsignedInteger:
            sums.numbers += _inFields ? e.asFixedLengthUnsignedIntegerElement().value() : 0;
            break;
        case Element::Kind::FixedLengthSignedInteger:
            sums.numbers += _inFields ? static_cast<std::uint64_t>(e.asFixedLengthSignedIntegerElement().value()) : 0;
            break;
        case Element::Kind::FixedLengthFloatingPointNumber:
            addDouble(e.asFixedLengthFloatingPointNumberElement().value());
            break;
        case Element::Kind::RawData:
            addText(e.asRawDataElement());
            break;
        case Element::Kind::NullTerminatedStringBeginning:
        case Element::Kind::StaticLengthStringBeginning:
        case Element::Kind::DynamicLengthStringBeginning:
            _inText = true;
            break;
        case Element::Kind::ScopeBeginning:
            _inFields = e.asScopeBeginningElement().scope() >= yactfr::Scope::EventRecordCommonContext;
            break;
        case Element::Kind::DefaultClockValue:
            _cycles = e.asDefaultClockValueElement().cycles();
            break;
        case Element::Kind::EventRecordInfo: /* the time is in the header, before it */
            sums.times += _cycles + static_cast<std::uint64_t>(_offset);
            sums.events++;
            break;
        default:
            break;
        }
    }

    void addDouble(const double value)
    {
        std::uint64_t bits;
        std::memcpy(&bits, &value, sizeof(bits));
        sums.numbers += bits;
    }

    /* A text's bytes may come in several elements; what follows a NUL is none of it. */
    void addText(const yactfr::RawDataElement& data)
    {
        if (!_inText || !_inFields)
            return;
        const void *nul = std::memchr(data.begin(), 0, data.size());
        sums.text += nul ? static_cast<const std::uint8_t *>(nul) - data.begin() : data.size();
        _inText = !nul;
    }

    std::int64_t _offset; /* nanoseconds from the clock's origin to its 0 */
    std::uint64_t _cycles = 0;
    bool _inFields = false, _inText = false;
};

std::vector<std::string> streamFiles(const std::string& trace)
{
    std::vector<std::string> paths;
    DIR *dir = opendir(trace.c_str());
    while (const auto entry = dir ? readdir(dir) : nullptr)
        if (entry->d_name[0] != '.' && entry->d_type != DT_DIR && std::string {entry->d_name} != "metadata")
            paths.push_back(trace + "/" + entry->d_name);
    closedir(dir);
    return paths;
}

/* Looks at the packets' begins alone. */
void cutIntoParts(File& file, std::vector<Part>& parts)
{
    auto it = file.elements.begin();
    const auto end = file.elements.end();
    yactfr::Index at = 0, begin = 0;
    std::size_t packets = 0;

    while (it != end) {
        if (it->kind() != Element::Kind::PacketInfo) {
            ++it;
            continue;
        }
        at += *it->asPacketInfoElement().expectedTotalLength() / 8;
        it.seekPacket(at);
        if (++packets % packetsPerPart && it != end)
            continue;
        parts.push_back({&file, begin, at});
        begin = at;
    }
}

Sums readAll(const std::vector<Part>& parts, const std::int64_t offset, const unsigned threads)
{
    std::atomic<std::size_t> next {0};
    std::vector<Reader> readers(threads, Reader {offset});
    std::vector<std::thread> running;
    Sums sums;

    for (auto& reader : readers)
        running.emplace_back([&] {
            for (std::size_t i = next++; i < parts.size(); i = next++)
                reader.read(parts[i]);
        });
    for (unsigned i = 0; i < threads; i++) {
        running[i].join();
        sums.add(readers[i].sums);
    }
    return sums;
}

std::int64_t clockOffset(const yactfr::TraceType& type)
{
    const auto& clock = **type.clockTypes().begin();
    return clock.offsetFromOrigin().seconds() * 1000000000 + static_cast<std::int64_t>(clock.offsetFromOrigin().cycles());
}

} // namespace

int main(const int argc, const char *const argv[])
{
    if (argc != 3) {
        std::fputs("usage: read_yactfr THREADS TRACE\n", stderr);
        return 2;
    }
    try {
        const std::string trace {argv[2]};
        std::ifstream metadata {trace + "/metadata", std::ios::binary};
        const auto type = yactfr::fromMetadataText(yactfr::createMetadataStream(metadata)->text()).first;
        std::vector<std::unique_ptr<File>> files;
        std::vector<Part> parts;

        for (const auto& path : streamFiles(trace)) {
            files.push_back(std::make_unique<File>(path, *type));
            cutIntoParts(*files.back(), parts);
        }
        const auto sums = readAll(parts, clockOffset(*type), static_cast<unsigned>(std::atoi(argv[1])));
        std::printf("{\"events\": %" PRIu64 ", \"numbers\": %" PRIu64 ", \"text\": %" PRIu64 ", \"times\": %" PRIu64 "}\n",
                    sums.events, sums.numbers, sums.text, sums.times);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "read_yactfr: %s\n", e.what());
        return 1;
    }
    return 0;
}
