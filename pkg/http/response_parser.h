#pragma once
// Internal: one response's head (and chunked body) on Beast's parser. Pure; include in .cpp files
// only (Beast is heavy).
#include <boost/beast/http/basic_parser.hpp>

#include "pkg/http/client.h"

namespace narad::http {

class ResponseParser final : public boost::beast::http::basic_parser<false> {
 public:
  enum class Step { need_more, head_done, body_done, too_large, malformed };

  ResponseParser(std::size_t header_bytes_max, bool answers_head);

  // As in RequestParser. too_large before head_done: the head exceeds its limit.
  Step feed_head(std::string_view input, std::size_t& used);
  Step feed_chunks(std::string_view input, std::size_t& used);
  void set_body_limit(std::uint64_t bytes) { body_limit(bytes); }

  ClientResponse& response() { return response_; }

 private:
  using error_code = boost::beast::error_code;
  using string_view = boost::beast::string_view;
  using field = boost::beast::http::field;

  void on_request_impl(boost::beast::http::verb, string_view, string_view, int,
                       error_code&) override {}
  void on_response_impl(int status, string_view, int, error_code&) override {
    response_.status = status;
  }
  void on_field_impl(field name, string_view name_text, string_view value, error_code& ec) override;
  void on_header_impl(error_code&) override { head_done_ = true; }
  void on_body_init_impl(boost::optional<std::uint64_t> const&, error_code&) override {}
  std::size_t on_body_impl(string_view body, error_code&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t, string_view extensions, error_code& ec) override;
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code&) override {
    response_.body.append(body.data(), body.size());
    return body.size();
  }
  void on_finish_impl(error_code&) override {}

  ClientResponse response_;
  std::size_t header_bytes_left_;
  bool head_done_ = false;
};

}  // namespace narad::http
