#include "internal/wire/move_messages.h"

#include <algorithm>

#include "internal/wire/json_fields.h"
#include "pkg/base/checksum.h"
#include "pkg/json/writer.h"

namespace narad::wire {
namespace {

constexpr std::size_t kIdBytesMax = 255;
constexpr std::size_t kWordBytesMax = 64;
constexpr std::size_t kTextBytesMax = 4096;
constexpr std::size_t kLinkEpochDigits = 16;
constexpr std::size_t kNonceDigits = 32;
constexpr std::uint64_t kPartitionMax = UINT32_MAX;
constexpr std::uint64_t kMarkerVersion = 1;
constexpr std::uint64_t kMarkerSeed = 0x316b'726d'766d'616e;  // "namvmrk1"

// ---- writing -----------------------------------------------------------------------------------

// Text for people, as long as a reader takes it. Bytes that are no UTF-8 grow threefold.
std::string_view shortened(std::string_view text) {
  if (text.size() <= kTextBytesMax && is_utf8(text)) return text;
  return text.substr(0, kTextBytesMax / 3);
}

void write(json::Writer& w, const MoveRef& m) {
  w.member("topic", m.partition.topic)
      .member("partition", m.partition.partition)
      .member("incarnation", to_hex16(m.incarnation.value()))
      .member("move_id", m.move_id);
}

void write(json::Writer& w, const Receipt& r) {
  w.begin_object()
      .member("records", r.records)
      .member("first", r.first)
      .member("end", r.end)
      .member("bytes", r.bytes)
      .member("digest", to_hex16(r.digest))
      .member("frozen_ms", r.frozen_ms)
      .member("passes", r.passes)
      .member("retries", r.retries)
      .member("damaged_blocks", r.damaged_blocks)
      .member("copy_ms", r.copy_ms)
      .member("drain_ms", r.drain_ms)
      .member("verify_ms", r.verify_ms)
      .member("install_ms", r.install_ms)
      .member("flip_ms", r.flip_ms)
      .end_object();
}

void write(json::Writer& w, const std::vector<ChildLink>& links) {
  w.key("links").begin_array();
  for (const ChildLink& l : links) {
    w.begin_object().member("child", l.child).member("epoch", l.epoch).end_object();
  }
  w.end_array();
}

void write(json::Writer& w, const MoveMarker& m) {
  w.begin_object()
      .member("version", kMarkerVersion)
      .member("move_id", m.move_id)
      .member("epoch", m.epoch)
      .member("source", m.source)
      .member("self", m.self)
      .member("incarnation", to_hex16(m.incarnation.value()))
      .member("promoted_hwm", m.promoted_hwm)
      .member("force_promoted", m.force_promoted)
      .member("installed_at_ms", m.installed_at);
  if (m.durable_at) w.member("durable_at_ms", *m.durable_at);
  write(w, m.links);
  write(w.key("receipt"), m.receipt);
  w.end_object();
}

void write_segments(json::Writer& w, const std::vector<ListedSegment>& segments) {
  w.key("segments").begin_array();
  for (const ListedSegment& s : segments) {
    w.begin_object().member("base", s.base).member("bytes", s.bytes).member("sealed", s.sealed);
    if (s.mtime) w.member("mtime_ms", *s.mtime);
    w.end_object();
  }
  w.end_array();
}

void write_positions(json::Writer& w, const Listing& m) {
  w.member("frontier", m.frontier).key("acked_ahead").begin_array();
  const std::size_t runs = std::min<std::size_t>(m.acked_ahead.size(), kAckedRunsMax);
  for (std::size_t i = 0; i < runs; ++i) {
    const AckedRun& r = m.acked_ahead[i];
    w.begin_object().member("begin", r.begin).member("end", r.end).end_object();
  }
  w.end_array();
  write(w, m.links);
  w.key("cursors").begin_array();
  for (const Sidecar& c : m.cursors) {
    w.begin_object()
        .member("child", c.child)
        .member("base64", to_base64(as_bytes(c.bytes)))
        .end_object();
  }
  w.end_array();
}

void write(json::Writer& w, const Listing& m) {
  w.begin_object()
      .member("move_id", m.move_id)
      .member("incarnation", to_hex16(m.incarnation.value()))
      .member("log", to_hex16(m.log.value()));
  if (m.listed_at) w.member("listed_at_ms", *m.listed_at);
  write_positions(w, m);
  w.member("hwm", m.hwm);
  write_segments(w, m.segments);
  if (m.marker) write(w.key("marker"), *m.marker);
  if (m.marker_age_ms) w.member("marker_age_ms", *m.marker_age_ms);
  w.member("bytes_per_second", m.bytes_per_second).end_object();
}

void write(json::Writer& w, const FreezeToken& t) {
  w.begin_object().member("epoch", t.epoch).member("nonce", t.nonce).end_object();
}

void write(json::Writer& w, const MoveReport& m) {
  w.begin_object();
  write(w, m.move);
  w.member("source", m.source)
      .member("phase", m.phase)
      .member("bytes_done", m.bytes_done)
      .member("bytes_total", m.bytes_total)
      .member("bytes_per_second", m.bytes_per_second)
      .member("write_bytes_per_second", m.write_bytes_per_second)
      .member("moved_ms_ago", m.moved_ms_ago)
      .member("passes", m.passes)
      .member("attempts", m.attempts)
      .member("frozen_ms", m.frozen_ms)
      .member("blocked", m.blocked)
      .member("last_error", shortened(m.last_error))
      .end_object();
}

// ---- reading -----------------------------------------------------------------------------------

// Fields with the bounds of this family.
struct MoveFields : Fields {
  using Fields::Fields;
  MoveFields& span(std::string_view name, std::uint64_t& out) {
    number(name, out, kSpanMsMax);
    return *this;
  }
  MoveFields& count(std::string_view name, std::uint64_t& out) {
    number(name, out, kNumberMax);
    return *this;
  }
  MoveFields& count(std::string_view name, std::uint32_t& out) {
    std::uint64_t n = out;
    number(name, n, UINT32_MAX);
    out = static_cast<std::uint32_t>(n);
    return *this;
  }
  template <class Tag>
  MoveFields& position(std::string_view name, StrongNumber<Tag>& out) {
    std::uint64_t n = out.value();
    number(name, n, kNumberMax);
    out = StrongNumber<Tag>(n);
    return *this;
  }
  MoveFields& wall(std::string_view name, UnixMillis& out) {
    UnixMillis t = out;
    number(name, t);
    if (t.value() > kWallMsMax || t.value() < -kWallMsMax) fail(name, "is no time");
    if (ok()) out = t;
    return *this;
  }
  MoveFields& maybe_wall(std::string_view name, std::optional<UnixMillis>& out) {
    return has(name) ? wall(name, out.emplace()) : *this;
  }
  MoveFields& digits(std::string_view name, std::string& out, std::size_t size) {
    text(name, out, size);
    const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    if (ok() && (out.size() != size || !std::all_of(out.begin(), out.end(), is_digit))) {
      fail(name, cat("is not ", size, " hex digits"));
    }
    return *this;
  }
  MoveFields& topic(std::string_view name, std::string& out) {
    text(name, out, kIdBytesMax);
    if (ok() && !validate_topic_name(out)) fail(name, "is no topic name");
    return *this;
  }
  MoveFields& node(std::string_view name, std::string& out) {
    text(name, out, kIdBytesMax);
    if (ok() && out.empty()) fail(name, "is empty");
    return *this;
  }
  // An element or a member that is an object: its problem becomes the outer one's.
  template <class F>
  void nested(std::string_view name, std::optional<json::Value> object, F read) {
    if (!ok()) return;
    MoveFields f(object);
    read(f);
    if (!f.ok()) fail(cat(name, ": ", f.problem()));
  }
};

template <class T, class F>
Result<T> decode_move(std::string_view what, std::string_view body, F read) {
  return decode_object<T, MoveFields>({what, kMoveMessageBytesMax}, body, read);
}

void read(MoveFields& f, MoveRef& m) {
  std::uint64_t partition = 0;
  f.topic("topic", m.partition.topic)
      .number("partition", partition, kPartitionMax)
      .id("incarnation", m.incarnation);
  f.position("move_id", m.move_id);
  m.partition.partition = PartitionId(static_cast<std::uint32_t>(partition));
}

void read(MoveFields& f, Receipt& r) {
  f.count("records", r.records).position("first", r.first).position("end", r.end);
  f.count("bytes", r.bytes).id("digest", r.digest);
  f.span("frozen_ms", r.frozen_ms)
      .count("passes", r.passes)
      .count("retries", r.retries)
      .count("damaged_blocks", r.damaged_blocks)
      .span("copy_ms", r.copy_ms)
      .span("drain_ms", r.drain_ms)
      .span("verify_ms", r.verify_ms)
      .span("install_ms", r.install_ms)
      .span("flip_ms", r.flip_ms);
}

void read_links(MoveFields& f, std::vector<ChildLink>& links) {
  f.maybe_each("links", kSidecarsMax, [&](json::Value v) {
    f.nested("links", v, [&](MoveFields& l) {
      ChildLink& link = links.emplace_back();
      l.topic("child", link.child).digits("epoch", link.epoch, kLinkEpochDigits);
    });
  });
}

void read(MoveFields& f, MoveMarker& m) {
  std::uint64_t version = 0;
  f.number("version", version);
  if (f.ok() && version != kMarkerVersion) f.fail("version", "is unknown");
  f.position("move_id", m.move_id)
      .count("epoch", m.epoch)
      .node("source", m.source)
      .node("self", m.self)
      .id("incarnation", m.incarnation);
  f.position("promoted_hwm", m.promoted_hwm).flag("force_promoted", m.force_promoted);
  f.wall("installed_at_ms", m.installed_at).maybe_wall("durable_at_ms", m.durable_at);
  read_links(f, m.links);
  if (!f.has("receipt")) return;
  f.nested("receipt", f.object("receipt"), [&](MoveFields& r) { read(r, m.receipt); });
}

void read_acked(MoveFields& f, Listing& m) {
  Offset least = m.frontier;
  f.maybe_each("acked_ahead", kAckedRunsMax, [&](json::Value v) {
    f.nested("acked_ahead", v, [&](MoveFields& r) {
      AckedRun& run = m.acked_ahead.emplace_back();
      r.position("begin", run.begin).position("end", run.end);
      if (r.ok() && (run.begin < least || run.end <= run.begin)) r.fail("is out of order");
      least = run.end;
    });
  });
}

void read_cursors(MoveFields& f, Listing& m) {
  f.maybe_each("cursors", kSidecarsMax, [&](json::Value v) {
    f.nested("cursors", v, [&](MoveFields& c) {
      Sidecar& cursor = m.cursors.emplace_back();
      std::string text;
      c.topic("child", cursor.child).text("base64", text, (kSidecarBytesMax + 2) / 3 * 4);
      if (!c.ok()) return;
      const auto bytes = parse_base64(text);
      if (!bytes || bytes->size() > kSidecarBytesMax) {
        c.fail("base64", "is no base64 of a cursor file");
        return;
      }
      cursor.bytes = to_text(*bytes);
    });
  });
}

void read_segments(MoveFields& f, Listing& m) {
  f.each("segments", kListedSegmentsMax, [&](json::Value v) {
    f.nested("segments", v, [&](MoveFields& s) {
      ListedSegment segment;
      s.position("base", segment.base).number("bytes", segment.bytes, kSegmentBytesMax);
      s.flag("sealed", segment.sealed);
      s.maybe_wall("mtime_ms", segment.mtime);
      if (s.ok() && !m.segments.empty() && segment.base <= m.segments.back().base) {
        s.fail("base", "does not ascend");
      }
      m.segments.push_back(segment);
    });
  });
}

void read(MoveFields& f, Listing& m) {
  f.position("move_id", m.move_id).id("incarnation", m.incarnation);
  if (f.has("log")) f.id("log", m.log);
  f.maybe_wall("listed_at_ms", m.listed_at).position("frontier", m.frontier);
  read_acked(f, m);
  read_links(f, m.links);
  read_cursors(f, m);
  f.position("hwm", m.hwm);
  read_segments(f, m);
  if (f.has("marker")) {
    f.nested("marker", f.object("marker"), [&](MoveFields& k) { read(k, m.marker.emplace()); });
  }
  if (f.has("marker_age_ms")) f.span("marker_age_ms", m.marker_age_ms.emplace());
  if (f.has("bytes_per_second")) f.count("bytes_per_second", m.bytes_per_second);
}

void read_token(MoveFields& f, std::optional<FreezeToken>& token) {
  if (!f.has("token")) return;
  f.nested("token", f.object("token"), [&](MoveFields& t) {
    t.count("epoch", token.emplace().epoch).digits("nonce", token->nonce, kNonceDigits);
  });
}

void read(MoveFields& f, MoveReport& m) {
  read(f, m.move);
  f.text("source", m.source, kIdBytesMax).text("phase", m.phase, kWordBytesMax);
  f.count("bytes_done", m.bytes_done)
      .count("bytes_total", m.bytes_total)
      .count("bytes_per_second", m.bytes_per_second)
      .count("write_bytes_per_second", m.write_bytes_per_second)
      .span("moved_ms_ago", m.moved_ms_ago)
      .count("passes", m.passes)
      .count("attempts", m.attempts)
      .span("frozen_ms", m.frozen_ms)
      .text("blocked", m.blocked, kWordBytesMax)
      .text("last_error", m.last_error, kTextBytesMax);
}

}  // namespace

std::string encode_marker_file(const MoveMarker& marker) {
  json::Writer w;
  write(w, marker);
  std::string text = w.take();
  const std::uint64_t sum = xxh3(as_bytes(text), kMarkerSeed);
  return cat(text, "\n", to_hex16(sum), "\n");
}

std::optional<MoveMarker> decode_marker_file(std::string_view file) {
  constexpr std::size_t kTail = 18;  // line feed, 16 digits, line feed
  if (file.size() < kTail || file.size() > kMarkerFileBytesMax) return std::nullopt;
  const std::string_view text = file.substr(0, file.size() - kTail);
  const std::string_view tail = file.substr(text.size());
  if (tail.front() != '\n' || tail.back() != '\n') return std::nullopt;
  const auto sum = parse_hex16(tail.substr(1, 16));
  if (!sum || *sum != xxh3(as_bytes(text), kMarkerSeed)) return std::nullopt;
  auto marker =
      decode_move<MoveMarker>("the marker", text, [](MoveFields& f, MoveMarker& m) { read(f, m); });
  if (!marker) return std::nullopt;
  return std::move(marker.value());
}

std::string encode(const Listing& m) {
  json::Writer w;
  write(w, m);
  return w.take();
}

std::string encode(const FreezeRequest& m) {
  json::Writer w;
  w.begin_object();
  write(w, m.move);
  if (m.token) write(w.key("token"), *m.token);
  if (m.expect_hwm) w.member("expect_hwm", *m.expect_hwm);
  w.end_object();
  return w.take();
}

std::string encode(const FreezeAnswer& m) {
  json::Writer w;
  w.begin_object();
  if (m.token) write(w.key("token"), *m.token);
  w.member("ttl_ms", m.ttl_ms);
  if (m.listing) write(w.key("listing"), *m.listing);
  w.end_object();
  return w.take();
}

std::string encode(const SegmentDigests& m) {
  json::Writer w;
  w.begin_object().member("segment_bytes", m.segment_bytes).key("blocks").begin_array();
  for (const auto& block : m.blocks) {
    if (block) {
      w.value(to_hex16(*block));
    } else {
      w.null();
    }
  }
  w.end_array().end_object();
  return w.take();
}

std::string encode(const MoveReports& m) {
  json::Writer w;
  w.begin_object().key("moves").begin_array();
  for (const MoveReport& report : m.moves) write(w, report);
  w.end_array().end_object();
  return w.take();
}

std::string encode(const SilenceAnswer& m) {
  json::Writer w;
  w.begin_object().member("silent_ms", m.silent_ms).member("term", m.term).end_object();
  return w.take();
}

std::string encode(const Receipt& m) {
  json::Writer w;
  write(w, m);
  return w.take();
}

Result<Listing> decode_listing(std::string_view body) {
  return decode_move<Listing>("the listing", body, [](MoveFields& f, Listing& m) { read(f, m); });
}

Result<FreezeRequest> decode_freeze_request(std::string_view body) {
  return decode_move<FreezeRequest>("the request to freeze", body,
                                    [](MoveFields& f, FreezeRequest& m) {
                                      read(f, m.move);
                                      read_token(f, m.token);
                                      if (f.has("expect_hwm"))
                                        f.position("expect_hwm", m.expect_hwm.emplace());
                                      if (m.expect_hwm && !m.token)
                                        f.fail("expect_hwm", "without a token");
                                    });
}

Result<FreezeAnswer> decode_freeze_answer(std::string_view body) {
  return decode_move<FreezeAnswer>("the answer to a request to freeze", body,
                                   [](MoveFields& f, FreezeAnswer& m) {
                                     read_token(f, m.token);
                                     f.span("ttl_ms", m.ttl_ms);
                                     if (!f.has("listing")) return;
                                     f.nested("listing", f.object("listing"),
                                              [&](MoveFields& l) { read(l, m.listing.emplace()); });
                                   });
}

Result<SegmentDigests> decode_segment_digests(std::string_view body) {
  return decode_move<SegmentDigests>("the digests", body, [](MoveFields& f, SegmentDigests& m) {
    f.number("segment_bytes", m.segment_bytes, kSegmentBytesMax);
    f.each("blocks", kDigestsMax, [&](json::Value v) {
      auto& block = m.blocks.emplace_back();
      if (v.is(json::Kind::null)) return;
      if (v.is(json::Kind::string)) block = parse_hex16(v.as_string());
      if (!block) f.fail("blocks", "holds something that is no digest");
    });
  });
}

Result<MoveReports> decode_move_reports(std::string_view body) {
  return decode_move<MoveReports>("the report of moves", body, [](MoveFields& f, MoveReports& m) {
    f.each("moves", kMoveReportsMax, [&](json::Value v) {
      f.nested("moves", v, [&](MoveFields& r) { read(r, m.moves.emplace_back()); });
    });
  });
}

Result<SilenceAnswer> decode_silence_answer(std::string_view body) {
  return decode_move<SilenceAnswer>("the answer about a silent member", body,
                                    [](MoveFields& f, SilenceAnswer& m) {
                                      f.span("silent_ms", m.silent_ms).count("term", m.term);
                                    });
}

}  // namespace narad::wire
