#pragma once
// Metrics: counters, gauges and histograms with labels, and their Prometheus text form (0.0.4).
//
// Single-threaded: one registry lives on one loop and is touched only there. Cells are found once
// and kept: a hot path increments through a pointer, without a look-up. A cell lives until its
// series is removed or the registry goes; with series that can be removed, look up again.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace narad::metrics {

enum class Type : std::uint8_t { counter, gauge, histogram };

// A metric family as it is declared: `buckets` are the upper bounds of a histogram, ascending,
// without +Inf.
struct Family {
  std::string_view name;
  Type type = Type::counter;
  std::string_view help;
  std::vector<std::string_view> labels;
  std::vector<double> buckets;
};

class Counter {
 public:
  void add(double n = 1) { value_ += n; }
  // For a total that is counted elsewhere. It must not fall.
  void set_total(double n) { value_ = n; }
  double value() const { return value_; }

 private:
  double value_ = 0;
};

class Gauge {
 public:
  void set(double n) { value_ = n; }
  void add(double n) { value_ += n; }
  double value() const { return value_; }

 private:
  double value_ = 0;
};

class Histogram {
 public:
  explicit Histogram(const std::vector<double>& bounds)
      : bounds_(&bounds), counts_(bounds.size() + 1) {}
  void observe(double value);
  std::uint64_t count() const;
  double sum() const { return sum_; }
  const std::vector<std::uint64_t>& counts() const { return counts_; }  // per bucket, +Inf last

 private:
  const std::vector<double>* bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
};

using LabelValues = std::vector<std::string>;  // one per label of the family, in its order

class Registry {
 public:
  Registry() = default;
  Registry(const Registry&) = delete;

  // Declares a family; one without labels is present at once, with value 0. REQUIRES: a valid name
  // that is not declared yet. `family` and its texts are copied.
  void declare(const Family& family);

  // The cell of one series, made on first use. REQUIRES: declared, of that type, as many values as
  // labels.
  Counter& counter(std::string_view name, const LabelValues& values = {});
  Gauge& gauge(std::string_view name, const LabelValues& values = {});
  Histogram& histogram(std::string_view name, const LabelValues& values = {});

  // Removes every series in which label `label` has that value, in all families.
  void remove_series(std::string_view label, std::string_view value);
  // Removes all series of one family (gauges that are set anew as a whole).
  void clear(std::string_view name);

  // The exposition, families and series in byte order.
  std::string expose() const;

 private:
  struct Series {
    Counter counter;
    Gauge gauge;
    std::unique_ptr<Histogram> histogram;
  };
  struct Entry {
    std::string name;
    Type type;
    std::string help;
    std::vector<std::string> labels;
    std::vector<double> buckets;
    std::map<LabelValues, std::unique_ptr<Series>> series;
  };
  Entry& entry(std::string_view name, Type type);
  Series& series(std::string_view name, Type type, const LabelValues& values);

  std::map<std::string, Entry, std::less<>> families_;
};

// Content-Type of expose().
inline constexpr std::string_view kContentType =
    "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

}  // namespace narad::metrics
