#include "pkg/http/response_parser.h"

#include <algorithm>
#include <boost/beast/http/error.hpp>

#include "pkg/http/ascii.h"

namespace narad::http {

namespace beast_http = boost::beast::http;

ResponseParser::ResponseParser(std::size_t header_bytes_max, bool answers_head)
    : header_bytes_left_(header_bytes_max) {
  header_limit(static_cast<std::uint32_t>(header_bytes_max));
  body_limit(boost::none);
  skip(answers_head);
}

ResponseParser::Step ResponseParser::feed_head(std::string_view input, std::size_t& used) {
  used = 0;
  while (!head_done_) {
    if (input.empty()) return Step::need_more;
    error_code ec;
    const std::size_t n = put(boost::asio::const_buffer(input.data(), input.size()), ec);
    input.remove_prefix(n);
    used += n;
    header_bytes_left_ -= std::min(n, header_bytes_left_);
    if (ec == beast_http::error::need_more)
      return input.size() >= header_bytes_left_ ? Step::too_large : Step::need_more;
    if (ec == beast_http::error::header_limit) return Step::too_large;
    if (ec) return Step::malformed;
    if (head_done_ && header_bytes_left_ == 0) return Step::too_large;
  }
  return Step::head_done;
}

ResponseParser::Step ResponseParser::feed_chunks(std::string_view input, std::size_t& used) {
  used = 0;
  while (!is_done()) {
    if (input.empty()) return Step::need_more;
    error_code ec;
    const std::size_t n = put(boost::asio::const_buffer(input.data(), input.size()), ec);
    input.remove_prefix(n);
    used += n;
    if (ec == beast_http::error::need_more)
      return has_bare_line_end(input) ? Step::malformed : Step::need_more;
    if (ec == beast_http::error::body_limit) return Step::too_large;
    if (ec) return Step::malformed;
  }
  return Step::body_done;
}

void ResponseParser::on_field_impl(field name, string_view name_text, string_view value,
                                   error_code& ec) {
  if (head_done_) return;  // trailers
  const std::string_view text(value.data(), value.size());
  // Anything but plain "chunked" would leave the end of the message to guesswork.
  if (name == field::transfer_encoding && !equal_ignoring_case(text, "chunked")) {
    ec = beast_http::error::bad_transfer_encoding;
    return;
  }
  response_.headers.add(std::string_view(name_text.data(), name_text.size()), text);
}

void ResponseParser::on_chunk_header_impl(std::uint64_t, string_view extensions, error_code& ec) {
  if (has_control({extensions.data(), extensions.size()}))
    ec = beast_http::error::bad_chunk_extension;
}

}  // namespace narad::http
