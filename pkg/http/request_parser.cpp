#include "pkg/http/request_parser.h"

#include <algorithm>
#include <boost/beast/http/error.hpp>

#include "pkg/base/text.h"
#include "pkg/http/ascii.h"

namespace narad::http {

namespace beast_http = boost::beast::http;

namespace {

std::string_view to_std(boost::beast::string_view s) { return {s.data(), s.size()}; }

bool has_good_escapes(std::string_view text) {
  for (std::size_t i = text.find('%'); i != std::string_view::npos; i = text.find('%', i + 3)) {
    if (text.size() - i < 3 || hex_digit(text[i + 1]) < 0 || hex_digit(text[i + 2]) < 0)
      return false;
  }
  return true;
}

}  // namespace

bool normalize_target(std::string& target) {
  if (!target.starts_with('/')) {
    constexpr std::string_view kHttp = "http://", kHttps = "https://";
    const std::string_view text = target;
    std::size_t authority = 0;
    for (const std::string_view scheme : {kHttp, kHttps}) {
      if (equal_ignoring_case(text.substr(0, scheme.size()), scheme)) authority = scheme.size();
    }
    if (authority == 0) return false;
    const std::size_t end = text.find_first_of("/?", authority);
    if (end == authority) return false;
    std::string rest(end == std::string_view::npos ? std::string_view() : text.substr(end));
    if (!rest.starts_with('/')) rest.insert(0, 1, '/');
    target = std::move(rest);
  }
  return has_good_escapes(std::string_view(target).substr(0, target.find('?')));
}

RequestParser::RequestParser(std::size_t header_bytes_max) : header_bytes_left_(header_bytes_max) {
  header_limit(static_cast<std::uint32_t>(header_bytes_max));
  request_.headers.reserve(16, 512);
  body_limit(boost::none);
}

RequestParser::Step RequestParser::fail(int status, std::string_view why) {
  refusal_status_ = status;
  refusal_why_ = why;
  return Step::refused;
}

void RequestParser::refuse(int status, std::string_view why, error_code& ec) {
  if (refusal_status_ == 0) fail(status, why);
  ec = beast_http::error::bad_field;
}

Response RequestParser::refusal() const {
  Response response =
      text_response(refusal_status_, cat(refusal_status_, ' ', reason_phrase(refusal_status_),
                                         refusal_why_.empty() ? "" : ": ", refusal_why_));
  response.close = true;
  return response;
}

RequestParser::Step RequestParser::feed_head(std::string_view input, std::size_t& used) {
  used = 0;
  // Empty lines before a request are leftovers of sloppy clients (RFC 9112, 2.2).
  if (!got_some()) {
    while (input.starts_with("\r\n")) {
      input.remove_prefix(2);
      used += 2;
    }
    if (input.empty() || input == "\r") return Step::need_more;
  }
  while (!head_done_) {
    error_code ec;
    const std::size_t n = put(boost::asio::const_buffer(input.data(), input.size()), ec);
    input.remove_prefix(n);
    used += n;
    header_bytes_left_ -= std::min(n, header_bytes_left_);
    if (ec == beast_http::error::need_more) {
      if (input.size() >= header_bytes_left_) return fail(431, "");
      return Step::need_more;
    }
    if (ec == beast_http::error::header_limit) return fail(431, "");
    if (ec == beast_http::error::bad_version)
      return fail(400, "malformed request line, or neither HTTP/1.1 nor 1.0");
    if (ec) return refusal_status_ != 0 ? Step::refused : fail(400, "malformed request head");
    // Beast holds the request line and the fields to the limit, but not their sum.
    if (head_done_ && header_bytes_left_ == 0) return fail(431, "");
  }
  return Step::head_done;
}

RequestParser::Step RequestParser::feed_chunks(std::string_view input, std::size_t& used) {
  used = 0;
  while (!is_done()) {
    error_code ec;
    const std::size_t n = put(boost::asio::const_buffer(input.data(), input.size()), ec);
    input.remove_prefix(n);
    used += n;
    // What is left over is the beginning of a line (chunk data is always eaten). Beast waits for
    // CR LF however many bare ends of line it has seen.
    if (ec == beast_http::error::need_more) {
      if (has_bare_line_end(input)) return fail(400, "a line of a chunked body must end in CR LF");
      return Step::need_more;
    }
    if (ec == beast_http::error::body_limit) return Step::too_large;
    if (ec) return refusal_status_ != 0 ? Step::refused : fail(400, "malformed chunked body");
    if (n == 0 && input.empty() && !is_done()) return Step::need_more;
  }
  return Step::body_done;
}

void RequestParser::on_request_impl(beast_http::verb, string_view method, string_view target,
                                    int version, error_code& ec) {
  request_.method = http::parse_method(to_std(method));
  request_.target.assign(target.data(), target.size());
  http11_ = version >= 11;
  if (!normalize_target(request_.target)) refuse(400, "the request target is no valid path", ec);
}

void RequestParser::on_field_impl(field name, string_view name_text, string_view value,
                                  error_code& ec) {
  if (head_done_) return;  // trailers may not add to what was decided on
  switch (name) {
    case field::transfer_encoding:
      // Anything but plain "chunked" would leave the end of the message to guesswork.
      if (!equal_ignoring_case(to_std(value), "chunked"))
        return refuse(501, "transfer codings other than chunked are not supported", ec);
      if (!http11_) return refuse(400, "a chunked body needs HTTP/1.1", ec);
      break;
    case field::content_length:
      // Beast takes "5, 5" and a second equal field; other parsers on the way may not.
      if (value.empty() ||
          !std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; }) ||
          request_.headers.get("Content-Length"))
        return refuse(400, "bad Content-Length", ec);
      break;
    case field::expect:
      if (!equal_ignoring_case(to_std(value), "100-continue"))
        return refuse(417, "only 100-continue is understood", ec);
      expects_continue_ = http11_;
      break;
    case field::host:
      if (request_.headers.get("Host")) return refuse(400, "more than one Host", ec);
      break;
    default:
      break;
  }
  request_.headers.add(to_std(name_text), to_std(value));
}

void RequestParser::on_header_impl(error_code& ec) {
  if (http11_ && !request_.headers.get("Host"))
    return refuse(400, "missing required Host header", ec);
  head_done_ = true;
}

std::size_t RequestParser::on_body_impl(string_view body, error_code&) {
  request_.body.append(body.data(), body.size());  // not reached: the session reads these itself
  return body.size();
}

void RequestParser::on_chunk_header_impl(std::uint64_t, string_view extensions, error_code& ec) {
  // Beast lets a quoted value hold an end of line; others would see a chunk begin there.
  if (has_control(to_std(extensions))) refuse(400, "malformed chunk extension", ec);
}

std::size_t RequestParser::on_chunk_body_impl(std::uint64_t, string_view body, error_code&) {
  request_.body.append(body.data(), body.size());
  return body.size();
}

}  // namespace narad::http
