#pragma once
// Internal: one request's head (and chunked body) on Beast's parser, stricter where Beast is
// lenient about message framing. Pure; include in .cpp files only (Beast is heavy).
#include <boost/beast/http/basic_parser.hpp>

#include "pkg/http/message.h"

namespace narad::http {

class RequestParser final : public boost::beast::http::basic_parser<true> {
 public:
  enum class Step {
    need_more,  // feed what is left over, with more behind it
    head_done,  // request() is there but for its body
    body_done,  // feed() after head_done, for chunked bodies only
    too_large,  // the chunked body exceeds its limit
    refused     // see refusal(); the connection cannot go on
  };

  explicit RequestParser(std::size_t header_bytes_max);

  // Parses from `input`, and says in `used` how many bytes of it were eaten. Until head_done,
  // `input` begins with the bytes left over last time.
  Step feed_head(std::string_view input, std::size_t& used);
  // REQUIRES: head_done and has_chunked_body().
  Step feed_chunks(std::string_view input, std::size_t& used);
  void set_body_limit(std::uint64_t bytes) { body_limit(bytes); }

  Request& request() { return request_; }
  bool has_chunked_body() const { return chunked(); }
  std::uint64_t content_bytes() const { return content_length().value_or(0); }
  bool expects_continue() const { return expects_continue_; }
  bool is_http11() const { return http11_; }
  Response refusal() const;

 private:
  using error_code = boost::beast::error_code;
  using string_view = boost::beast::string_view;
  using field = boost::beast::http::field;

  void on_request_impl(boost::beast::http::verb, string_view method, string_view target,
                       int version, error_code& ec) override;
  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_field_impl(field name, string_view name_text, string_view value, error_code& ec) override;
  void on_header_impl(error_code& ec) override;
  void on_body_init_impl(boost::optional<std::uint64_t> const&, error_code&) override {}
  std::size_t on_body_impl(string_view body, error_code&) override;
  void on_chunk_header_impl(std::uint64_t, string_view extensions, error_code& ec) override;
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code&) override;
  void on_finish_impl(error_code&) override {}

  Step fail(int status, std::string_view why);
  void refuse(int status, std::string_view why, error_code& ec);

  Request request_;
  std::size_t header_bytes_left_;
  bool head_done_ = false;
  bool http11_ = false;
  bool expects_continue_ = false;
  int refusal_status_ = 0;
  std::string_view refusal_why_;  // a literal
};

// The path and query of a request target, in `target` itself: absolute form is cut down to origin
// form. False if it is not a target we serve.
bool normalize_target(std::string& target);

}  // namespace narad::http
