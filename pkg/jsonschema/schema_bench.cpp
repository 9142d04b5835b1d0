// A document of 1 MiB against patterns and whole schemas, as multiples of a plain scan of the same
// bytes (the parse alone is printed first). With --check: no pattern may cost 50 ms.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "pkg/jsonschema/pattern.h"
#include "pkg/jsonschema/schema.h"

namespace narad::jsonschema {
namespace {

double milliseconds_of(const std::function<void()>& work) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count());
  }
  return best;
}

std::string filled(std::string_view piece) {
  std::string text;
  while (text.size() + piece.size() <= 1 << 20) text += piece;
  return text;
}

double scan_ms(const std::string& text) {
  volatile std::size_t sink = 0;
  return milliseconds_of([&] {
    std::size_t sum = 0;
    for (char c : text) sum = sum * 31 + static_cast<unsigned char>(c);
    sink = sum;
  });
}

bool bench_patterns() {
  const char* patterns[] = {"^[a-z]+$",
                            "(a+)+$",
                            "^(([a-z])+.)+[A-Z]([a-z])+$",
                            "(x+x+)+y",
                            "^.{1,1000}$",
                            "^(.*\\n?){1,200}$",
                            "^[\\p{L}\\p{N} ]{1,64}$",
                            "^(\\w+\\.)*\\w+@(\\w+\\.)+[a-z]{2,}$",
                            "(a|b)*a(a|b){10}c",
                            "[\\s\\S]{1,500}Q"};
  bool fine = true;
  for (const char* spelled : patterns) {
    const Pattern pattern = Pattern::compile(spelled).value();
    double worst = 0, ratio = 0;
    for (const char* piece : {"a", "ab", "aab", "abaabbab", "x", "a.b", "0", "\u00e9", "\n"}) {
      const std::string text = filled(piece);
      const double ms = milliseconds_of([&] { (void)pattern.found_in(text); });
      if (ms > worst) {
        worst = ms;
        ratio = ms / scan_ms(text);
      }
    }
    std::printf("pattern %-40s worst %7.2f ms for 1 MiB, %5.1f x a scan\n", spelled, worst, ratio);
    fine = fine && worst < 50;
  }
  return fine;
}

void bench_schema(const char* name, const char* schema_text, const std::string& document) {
  const Schema schema = Schema::compile(schema_text).value();
  const double scan = scan_ms(document);
  const double parse = milliseconds_of([&] { (void)parse_document(document); });
  const auto parsed = parse_document(document).value();
  const double check = milliseconds_of([&] { (void)schema.check(parsed); });
  std::printf("%-24s parse %6.1f x a scan, check %6.1f x (%.1f + %.1f ms for %zu bytes)%s\n", name,
              parse / scan, check / scan, parse, check, document.size(),
              schema.check(parsed) ? " VIOLATION" : "");
}

std::string array_of(std::string_view element) {
  std::string text = "[";
  while (text.size() + element.size() < 1 << 20) text += std::string(element) + ",";
  text.back() = ']';
  return text;
}

std::string distinct_numbers() {
  std::string text = "[";
  for (int i = 0; text.size() < (1 << 20) - 8; ++i)
    text += std::to_string(i * 7919 % 1'000'003) + ",";
  text.back() = ']';
  return text;
}

}  // namespace
}  // namespace narad::jsonschema

int main(int argc, char** argv) {
  using namespace narad::jsonschema;
  const bool check = argc > 1 && std::strcmp(argv[1], "--check") == 0;
  const bool fine = bench_patterns();
  bench_schema("small integers", R"({"items":{"type":"integer","minimum":0}})", array_of("1"));
  bench_schema("unique numbers", R"({"uniqueItems":true})", distinct_numbers());
  bench_schema("one long string", R"({"type":"string","pattern":"^[a-z]+$","maxLength":2000000})",
               "\"" + std::string(1 << 20, 'a') + "\"");
  bench_schema(
      "orders",
      R"({"items":{"type":"object","required":["id","sku"],"properties":{"id":{"type":"integer"},
          "sku":{"type":"string","pattern":"^[A-Z]{3}-[0-9]+$"},"price":{"multipleOf":0.01},
          "tags":{"items":{"enum":["a","b","c"]}}},"additionalProperties":false}})",
      array_of(R"({"id":12,"sku":"ABC-123","price":9.99,"tags":["a","c"]})"));
  return check && !fine ? 1 : 0;
}
