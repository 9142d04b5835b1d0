#include "pkg/metrics/registry.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "pkg/base/assert.h"

namespace narad::metrics {
namespace {

bool valid_name(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ':';
  });
}

std::string escape(std::string_view text, bool quotes) {
  std::string out;
  for (char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

// As Go's strconv 'g' with the shortest digits, so that bucket labels ("1.048576e+06") are those
// that dashboards know.
std::string number(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (std::isnan(value)) return "NaN";
  if (value == 0) return "0";
  char text[64];
  const auto format = [&](std::chars_format how) {
    const auto [end, ec] = std::to_chars(text, text + sizeof text, value, how);
    NARAD_ASSERT(ec == std::errc{});
    return std::string(text, end);
  };
  std::string scientific = format(std::chars_format::scientific);
  const std::size_t e = scientific.find('e');
  int exponent = 0;
  const char* digits = scientific.data() + e + (scientific[e + 1] == '+' ? 2 : 1);
  std::from_chars(digits, scientific.data() + scientific.size(), exponent);
  return exponent < -4 || exponent >= 6 ? scientific : format(std::chars_format::fixed);
}

std::string label_text(const std::vector<std::string>& names, const LabelValues& values,
                       std::string_view extra_name = {}, std::string_view extra_value = {}) {
  if (names.empty() && extra_name.empty()) return "";
  std::string out = "{";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (out.size() > 1) out += ',';
    out += names[i];
    out += "=\"";
    out += escape(values[i], true);
    out += '"';
  }
  if (!extra_name.empty()) {
    if (out.size() > 1) out += ',';
    out += extra_name;
    out += "=\"";
    out += extra_value;
    out += '"';
  }
  return out + "}";
}

void line(std::string& out, std::string_view name, std::string_view suffix, std::string_view labels,
          const std::string& value) {
  out += name;
  out += suffix;
  out += labels;
  out += ' ';
  out += value;
  out += '\n';
}

}  // namespace

void Histogram::observe(double value) {
  const auto at = std::lower_bound(bounds_->begin(), bounds_->end(), value) - bounds_->begin();
  ++counts_[static_cast<std::size_t>(at)];
  sum_ += value;
}

std::uint64_t Histogram::count() const {
  std::uint64_t n = 0;
  for (std::uint64_t c : counts_) n += c;
  return n;
}

void Registry::declare(const Family& family) {
  NARAD_ASSERT(valid_name(family.name), family.name);
  NARAD_ASSERT(!families_.contains(family.name), family.name);
  NARAD_ASSERT(std::is_sorted(family.buckets.begin(), family.buckets.end()), family.name);
  for (std::string_view label : family.labels) {
    NARAD_ASSERT(valid_name(label) && label != "le" && !label.starts_with("__"), label);
  }
  Entry entry;
  entry.name = family.name;
  entry.type = family.type;
  entry.help = family.help;
  entry.labels.assign(family.labels.begin(), family.labels.end());
  entry.buckets = family.buckets;
  families_.emplace(entry.name, std::move(entry));
  if (family.labels.empty()) series(family.name, family.type, {});
}

Registry::Entry& Registry::entry(std::string_view name, Type type) {
  auto it = families_.find(name);
  NARAD_ASSERT(it != families_.end(), name);
  NARAD_ASSERT(it->second.type == type, name);
  return it->second;
}

Registry::Series& Registry::series(std::string_view name, Type type, const LabelValues& values) {
  Entry& family = entry(name, type);
  NARAD_ASSERT(values.size() == family.labels.size(), name);
  auto& cell = family.series[values];
  if (!cell) {
    cell = std::make_unique<Series>();
    if (type == Type::histogram) cell->histogram = std::make_unique<Histogram>(family.buckets);
  }
  return *cell;
}

Counter& Registry::counter(std::string_view name, const LabelValues& values) {
  return series(name, Type::counter, values).counter;
}
Gauge& Registry::gauge(std::string_view name, const LabelValues& values) {
  return series(name, Type::gauge, values).gauge;
}
Histogram& Registry::histogram(std::string_view name, const LabelValues& values) {
  return *series(name, Type::histogram, values).histogram;
}

void Registry::remove_series(std::string_view label, std::string_view value) {
  for (auto& [name, family] : families_) {
    const auto at = std::find(family.labels.begin(), family.labels.end(), label);
    if (at == family.labels.end()) continue;
    const auto index = static_cast<std::size_t>(at - family.labels.begin());
    std::erase_if(family.series, [&](const auto& item) { return item.first[index] == value; });
  }
}

void Registry::clear(std::string_view name) {
  auto it = families_.find(name);
  NARAD_ASSERT(it != families_.end(), name);
  it->second.series.clear();
}

std::string Registry::expose() const {
  static constexpr std::string_view kTypes[] = {"counter", "gauge", "histogram"};
  std::string out;
  for (const auto& [name, family] : families_) {
    if (family.series.empty()) continue;
    out += "# HELP " + name + " " + escape(family.help, false) + "\n";
    out += "# TYPE " + name + " ";
    out += kTypes[static_cast<std::size_t>(family.type)];
    out += '\n';
    for (const auto& [values, cell] : family.series) {
      const std::string labels = label_text(family.labels, values);
      if (family.type == Type::counter) {
        line(out, name, "", labels, number(cell->counter.value()));
      } else if (family.type == Type::gauge) {
        line(out, name, "", labels, number(cell->gauge.value()));
      } else {
        std::uint64_t below = 0;
        const auto& counts = cell->histogram->counts();
        for (std::size_t i = 0; i < counts.size(); ++i) {
          below += counts[i];
          const std::string bound = i < family.buckets.size() ? number(family.buckets[i]) : "+Inf";
          line(out, name, "_bucket", label_text(family.labels, values, "le", bound),
               std::to_string(below));
        }
        line(out, name, "_sum", labels, number(cell->histogram->sum()));
        line(out, name, "_count", labels, std::to_string(below));
      }
    }
  }
  return out;
}

}  // namespace narad::metrics
