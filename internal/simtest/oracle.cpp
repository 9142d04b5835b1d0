#include "internal/simtest/oracle.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "pkg/base/checksum.h"

namespace narad::simtest {
namespace {

std::string name_of(const LogName& log) {
  return cat(to_string(log.partition), "@", to_hex16(log.incarnation.value()));
}

// Bytes that follow from the number: printable or not, so that no code may care. Eight at a time:
// every payload that is seen anywhere is held against them.
class Filler {
 public:
  explicit Filler(std::uint64_t id) : state_(id * 0x9e3779b97f4a7c15ull + 1) {}
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

 private:
  std::uint64_t state_;
};

std::string head_of(std::uint64_t id, std::size_t bytes) { return cat("m", id, ";", bytes, ";"); }

}  // namespace

std::string Oracle::payload(std::uint64_t id, std::size_t bytes) {
  std::string out = head_of(id, bytes);
  std::size_t at = out.size();
  out.resize(std::max(at, bytes));
  for (Filler filler(id); at < out.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = filler.next();
    std::memcpy(out.data() + at, &word, std::min(sizeof word, out.size() - at));
  }
  return out;
}

// Whether it is payload(id, bytes).
bool Oracle::is_payload(std::string_view text, std::uint64_t id, std::size_t bytes) {
  const std::string head = head_of(id, bytes);
  if (text.size() != std::max(head.size(), bytes) || !text.starts_with(head)) return false;
  Filler filler(id);
  std::size_t at = head.size();
  for (; at + sizeof(std::uint64_t) <= text.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof word);
    if (word != filler.next()) return false;
  }
  const std::uint64_t last = filler.next();
  if (std::memcmp(text.data() + at, &last, text.size() - at) != 0) return false;
  return true;
}

std::optional<std::uint64_t> Oracle::id_of(std::string_view text) {
  if (text.empty() || text[0] != 'm') return std::nullopt;
  const std::size_t first = text.find(';');
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = text.find(';', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  auto id = parse_number<std::uint64_t>(text.substr(1, first - 1));
  auto bytes = parse_number<std::size_t>(text.substr(first + 1, second - first - 1));
  if (!id || !bytes || *bytes > (1u << 26) || !is_payload(text, *id, *bytes)) return std::nullopt;
  return id;
}

void Oracle::violation(std::string text) {
  if (violations_.size() < 50) violations_.push_back(std::move(text));
}

std::uint64_t Oracle::sent(const std::string& topic, Incarnation incarnation, int node) {
  const std::uint64_t id = ++last_id_;
  messages_[id] = Sent{topic, incarnation, State::unknown, Nanos(0), node};
  ++counts_.sent;
  return id;
}

void Oracle::accepted(std::uint64_t id, Nanos now) {
  Sent& m = messages_.at(id);
  m.state = State::accepted;
  m.accepted_at = now;
  ++counts_.accepted;
}

void Oracle::refused(std::uint64_t id) {
  messages_.at(id).state = State::refused;
  ++counts_.refused;
}

void Oracle::seen(const LogName& log, const StoredRecord& record) {
  const auto id = id_of(record.payload);
  const std::string where = cat(name_of(log), " offset ", record.offset);
  if (!id || !messages_.contains(*id)) {
    return violation(
        cat(where, " holds a payload that nobody sent (", record.payload.size(), " bytes)"));
  }
  const Sent& m = messages_.at(*id);
  if (m.topic != log.partition.topic || m.incarnation != log.incarnation) {
    violation(cat(where, " holds message ", *id, " of another life or topic"));
  }
  if (m.state == State::refused) {
    violation(cat(where, " holds message ", *id, ", which was refused for certain"));
  }
  Position& p = logs_[log][record.offset];
  // What a dead owner wrote last may stand where its successor wrote something else.
  if (p.id != 0 && p.id != *id && !contested_.contains(log)) {
    violation(cat(where, " was message ", p.id, " and is now ", *id));
  }
  p.id = *id;
  ++counts_.read;
}

void Oracle::delivered(const LogName& log, const StoredRecord& record, int boot, Nanos asked,
                       Nanos now, Nanos visibility) {
  seen(log, record);
  Position& p = logs_[log][record.offset];
  ++counts_.delivered;
  if (std::exchange(p.delivered, true)) ++counts_.redelivered;
  // An answer that took longer than a lease lasts (a slow disk under another partition of it) says
  // what was so once: since then others may have had the record, and acked it.
  const bool outlived = now - asked >= visibility;
  if (outlived && boot == p.lease_boot && asked < p.noted) return;
  const std::string where = cat(name_of(log), " offset ", record.offset);
  if (p.ack_durable && boot >= 0 && (boot != p.lease_boot || judges(p, boot, asked))) {
    violation(cat(where, " was delivered although its ack was on disk"));
  }
  const bool same_life = judges(p, boot, asked);
  if (p.acked && same_life) violation(cat(where, " was delivered after it was acked"));
  if (!p.acked && same_life && now < p.lease_until) {
    violation(cat(where, " was delivered while another lease was live for ",
                  format_duration(p.lease_until - now)));
  }
  p.acked = false;
  p.lease_boot = boot;
  p.lease_until = asked + visibility;
  p.noted = now;
}

void Oracle::acked(const LogName& log, Offset offset, int boot, Nanos now) {
  Position& p = logs_[log][offset];
  p.acked = true;
  p.lease_boot = boot;
  p.noted = now;
  p.acked_at = this->now();
  fresh_acks_[log].insert(offset);
  ++counts_.acked;
}

void Oracle::nacked(const LogName& log, Offset offset) {
  logs_[log][offset].lease_until = Nanos(0);
}

void Oracle::extended(const LogName& log, Offset offset, Nanos now, Nanos visibility) {
  logs_[log][offset].lease_until = now + visibility;
}

void Oracle::acks_durable(const LogName& log) {
  auto fresh = std::move(fresh_acks_[log]);
  fresh_acks_[log].clear();
  for (Offset offset : fresh) {
    Position& p = logs_[log][offset];
    if (p.acked) p.ack_durable = true;
  }
}

void Oracle::moved(const LogName& log, Nanos armed_after, int boot) {
  for (auto& [offset, p] : logs_[log]) {
    const bool known_there = p.ack_durable || p.lease_boot == boot;
    const bool carried = p.acked && known_there && p.acked_at < armed_after;
    p.acked = p.ack_durable = carried;
    p.lease_boot = -1;
    p.lease_until = Nanos(0);
  }
  fresh_acks_[log].clear();
}

void Oracle::promoted(const LogName& log) {
  contested_.insert(log);
  moved(log, Nanos(0), -1);
}

void Oracle::set_aside(const LogName& log, std::string_view payload) {
  if (const auto id = id_of(payload)) aside_[log].insert(*id);
}

bool Oracle::is_stranded(const Sent& m, std::uint64_t id) const {
  for (const LogName& log : contested_) {
    if (log.partition.topic != m.topic || log.incarnation != m.incarnation) continue;
    const auto aside = aside_.find(log);
    if (copies_lost_.contains(log) || (aside != aside_.end() && aside->second.contains(id)))
      return true;
  }
  return false;
}

void Oracle::disk_lost(int node) {
  for (auto& [id, m] : messages_) m.may_be_lost = m.may_be_lost || m.node == node;
}

void Oracle::topic_deleted(const std::string& topic, Incarnation incarnation) {
  lives_[{topic, incarnation}].deleted = true;
  ++counts_.topics_deleted;
}

void Oracle::retention(const std::string& topic, Incarnation incarnation, Nanos retention) {
  auto& life = lives_[{topic, incarnation}];
  // The shortest that ever held counts: what it allowed to delete may be gone.
  if (!life.retention || retention < *life.retention) life.retention = retention;
}

void Oracle::log_read(const LogName& log, Offset oldest, Offset hwm,
                      const std::vector<StoredRecord>& records) {
  Offset expected = oldest;
  auto& held = held_[log];
  held.clear();
  for (const StoredRecord& record : records) {
    if (record.offset != expected) {
      violation(cat(name_of(log), " has no record at offset ", expected, " (next is ",
                    record.offset, ")"));
    }
    expected = record.offset.next();
    if (auto id = id_of(record.payload)) ++held[*id];
  }
  if (expected != hwm)
    violation(cat(name_of(log), " ends at ", expected, ", not at its HWM ", hwm));
  if (auto it = read_.find(log); it != read_.end() && hwm < it->second.second) {
    violation(cat(name_of(log), ": the HWM fell from ", it->second.second, " to ", hwm));
  }
  read_[log] = {oldest, hwm};
}

void Oracle::topic_read(const std::string& topic, Incarnation incarnation, Nanos now,
                        Reroutes reroutes) {
  const Life& life = lives_[{topic, incarnation}];
  if (life.deleted) return;
  std::map<std::uint64_t, std::uint64_t> times;
  for (const auto& [log, held] : held_) {
    if (log.partition.topic != topic || log.incarnation != incarnation) continue;
    for (const auto& [id, n] : held) times[id] += n;
  }
  for (const auto& [id, m] : messages_) {
    if (m.topic != topic || m.incarnation != incarnation) continue;
    const auto it = times.find(id);
    const std::uint64_t n = it == times.end() ? 0 : it->second;
    const bool aged = life.retention && now - m.accepted_at >= *life.retention;
    if (m.state == State::accepted && n == 0 && !aged && !m.may_be_lost) {
      if (is_stranded(m, id)) {
        ++counts_.stranded;
        continue;
      }
      violation(cat("message ", id, " of ", topic, "@", to_hex16(incarnation.value()),
                    " was accepted and is lost"));
    }
    if (n > 1 && reroutes != Reroutes::any) {
      std::string where;
      bool twice_at_home = false;
      for (const auto& [log, held] : held_) {
        if (log.partition.topic != topic || log.incarnation != incarnation || !held.contains(id))
          continue;
        where += cat(where.empty() ? "" : ", ", to_string(log.partition));
        // A record may be rerouted to one sibling twice.
        const bool home = log.partition.partition == m.home;
        twice_at_home = twice_at_home || (home && held.at(id) > 1);
      }
      if (reroutes == Reroutes::of_dead_owners && !twice_at_home) continue;
      violation(cat("message ", id, " of ", topic, " is stored ", n,
                    " times without a reroute (in ", where, ")"));
    }
  }
}

Oracle::Counts Oracle::counts() const {
  Counts c = counts_;
  for (const auto& [id, m] : messages_) c.unknown += m.state == State::unknown ? 1 : 0;
  return c;
}

}  // namespace narad::simtest
