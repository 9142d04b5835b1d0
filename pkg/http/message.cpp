#include "pkg/http/message.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/http/ascii.h"

namespace narad::http {

void Headers::add(std::string_view name, std::string_view value) {
  Field field;
  field.begin = static_cast<std::uint32_t>(text_.size());
  text_ += name;
  text_ += value;
  // Whoever can put a line break into a field can write headers and bodies of their own.
  const auto from = text_.begin() + field.begin;
  const auto breaks = [](char c) { return c == '\r' || c == '\n' || c == '\0'; };
  if (std::any_of(from, text_.end(), breaks)) [[unlikely]] {
    text_.resize(field.begin);
    std::copy_if(name.begin(), name.end(), std::back_inserter(text_), std::not_fn(breaks));
    field.name_bytes = static_cast<std::uint32_t>(text_.size()) - field.begin;
    std::copy_if(value.begin(), value.end(), std::back_inserter(text_), std::not_fn(breaks));
  } else {
    field.name_bytes = static_cast<std::uint32_t>(name.size());
  }
  field.value_bytes = static_cast<std::uint32_t>(text_.size()) - field.begin - field.name_bytes;
  fields_.push_back(field);
}

std::pair<std::string_view, std::string_view> Headers::at(std::size_t i) const {
  NARAD_ASSERT(i < fields_.size());
  const Field& f = fields_[i];
  const std::string_view text = text_;
  return {text.substr(f.begin, f.name_bytes), text.substr(f.begin + f.name_bytes, f.value_bytes)};
}

std::optional<std::string_view> Headers::get(std::string_view name) const {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].name_bytes != name.size()) continue;
    const auto [n, value] = at(i);
    if (equal_ignoring_case(n, name)) return value;
  }
  return std::nullopt;
}

std::size_t Headers::count(std::string_view name) const {
  std::size_t n = 0;
  for (std::size_t i = 0; i < fields_.size(); ++i) n += equal_ignoring_case(at(i).first, name);
  return n;
}

void Headers::clear() {
  text_.clear();
  fields_.clear();
}

void Headers::reserve(std::size_t fields, std::size_t bytes) {
  fields_.reserve(fields);
  text_.reserve(bytes);
}

std::string_view Request::path() const {
  const std::string_view t = target;
  return t.substr(0, t.find('?'));
}

std::string_view Request::query() const {
  const std::string_view t = target;
  const std::size_t mark = t.find('?');
  return mark == std::string_view::npos ? std::string_view() : t.substr(mark + 1);
}

Response json_response(int status, std::string body) {
  Response response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

Response empty_response(int status) {
  Response response;
  response.status = status;
  response.content_type = {};
  return response;
}

Response error_response(int status, std::string_view message) {
  std::string body = "{\"error\":";
  append_json_string(body, message);
  body += "}\n";
  return json_response(status, std::move(body));
}

Response text_response(int status, std::string_view message) {
  Response response;
  response.status = status;
  response.body = cat(message, '\n');
  response.content_type = "text/plain; charset=utf-8";
  response.headers.add("X-Content-Type-Options", "nosniff");
  return response;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Request Entity Too Large";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Requested Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Entity";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

}  // namespace narad::http
