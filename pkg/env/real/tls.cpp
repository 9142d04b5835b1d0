#include "pkg/env/real/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <optional>
#include <vector>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/env/env.h"

namespace narad {
namespace {

constexpr std::size_t kRecordBytes = 16 * 1024;  // the largest TLS record
constexpr std::size_t kReadBytes = 4 * 1024;

// Why the last call of OpenSSL on this thread failed. Empties the queue.
error_code last_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return asio::error::connection_reset;
  return error_code(static_cast<int>(code), asio::error::get_ssl_category());
}

Error load_error(std::string_view what, const std::string& file) {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return Error(Errc::invalid_argument, cat("cannot use ", what, " ", file, " for TLS: ",
                                           reason == nullptr ? "not readable" : reason));
}

// A read or a write that somebody waits for.
class Operation {
 public:
  explicit operator bool() const { return handler_.has_value(); }
  // `cancel` is called if the handler's slot fires first.
  template <class F>
  void begin(IoHandler handler, F cancel) {
    NARAD_ASSERT(!handler_, "one at a time");
    slot_ = asio::get_associated_cancellation_slot(handler);
    handler_.emplace(std::move(handler));
    if (slot_.is_connected()) slot_.assign([cancel](asio::cancellation_type) { cancel(); });
  }
  void finish(error_code ec, std::size_t bytes) {
    if (!handler_) return;
    if (slot_.is_connected()) slot_.clear();
    IoHandler handler(std::move(*handler_));
    handler_.reset();
    complete(std::move(handler), ec, bytes);
  }

 private:
  std::optional<IoHandler> handler_;
  asio::cancellation_slot slot_;
};

// One connection. Held by its TlsStream and by what is outstanding on the stream below.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  Engine(std::unique_ptr<Stream> under, asio::any_io_executor executor,
         std::shared_ptr<const TlsContext> context, TlsSide side)
      : under_(std::move(under)), executor_(std::move(executor)), context_(std::move(context)) {
    ssl_ = SSL_new(static_cast<SSL_CTX*>(context_->native()));
    NARAD_ASSERT(ssl_ != nullptr, "out of memory for TLS");
    arrived_ = BIO_new(BIO_s_mem());
    leaving_ = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl_, arrived_, leaving_);  // takes both over
    side == TlsSide::accepts ? SSL_set_accept_state(ssl_) : SSL_set_connect_state(ssl_);
  }
  ~Engine() { SSL_free(ssl_); }
  Engine(const Engine&) = delete;

  void read(asio::mutable_buffer buffer, IoHandler handler) {
    if (closed_)
      return complete(std::move(handler), error_code(asio::error::bad_descriptor), std::size_t{0});
    if (failed_) return complete(std::move(handler), failed_, std::size_t{0});
    read_into_ = buffer;
    reader_.begin(std::move(handler), [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->cancel(self->reader_);
    });
    pump();
  }

  void write(const ConstBuffers& buffers, IoHandler handler) {
    if (closed_)
      return complete(std::move(handler), error_code(asio::error::bad_descriptor), std::size_t{0});
    if (failed_) return complete(std::move(handler), failed_, std::size_t{0});
    to_seal_.clear();
    for (const auto& b : buffers) {
      const auto* from = static_cast<const char*>(b.data());
      to_seal_.insert(to_seal_.end(), from,
                      from + std::min(b.size(), kRecordBytes - to_seal_.size()));
    }
    sealed_ = 0;
    writer_.begin(std::move(handler), [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->cancel(self->writer_);
    });
    pump();
  }

  void shutdown_write() {
    if (closed_ || failed_) return;
    half_closed_ = true;
    if (SSL_is_init_finished(ssl_)) SSL_shutdown(ssl_);
    ERR_clear_error();
    pump();
  }

  // Says farewell if that can be done at once.
  void close() {
    if (closed_) return;
    closed_ = true;
    if (!failed_ && !writing_ && SSL_is_init_finished(ssl_)) {
      SSL_shutdown(ssl_);
      ERR_clear_error();
      flush();
    }
    under_->close();
    reader_.finish(asio::error::operation_aborted, 0);
    writer_.finish(asio::error::operation_aborted, 0);
  }

  Endpoint peer() const { return under_->peer(); }

 private:
  void cancel(Operation& operation) {
    if (!failed_) failed_ = asio::error::operation_aborted;
    operation.finish(asio::error::operation_aborted, 0);
  }

  void fail(error_code why) {
    if (!failed_) failed_ = why;
    reader_.finish(failed_, 0);
    writer_.finish(failed_, 0);
  }

  // Goes as far as it can without waiting; what it waits for calls it again.
  void pump() {
    if (failed_ || closed_) return;
    error_code trouble;
    bool hungry = false;
    if (!SSL_is_init_finished(ssl_)) judge(SSL_do_handshake(ssl_), hungry, trouble);
    if (!trouble && SSL_is_init_finished(ssl_)) {
      if (writer_ && sealed_ == 0 && !to_seal_.empty()) seal(hungry, trouble);
      if (!trouble && reader_) open(hungry, trouble);
    }
    flush();  // also what tells the other side of the trouble
    if (trouble) return fail(trouble);
    if (hungry) fetch();
  }

  // What a call of OpenSSL that returned `result` says.
  void judge(int result, bool& hungry, error_code& trouble) {
    if (result > 0) return;
    switch (SSL_get_error(ssl_, result)) {
      case SSL_ERROR_WANT_READ:
        hungry = true;
        ERR_clear_error();
        return;
      case SSL_ERROR_ZERO_RETURN:
        trouble = asio::error::eof;
        return;
      default:
        trouble = last_error();
    }
  }

  void seal(bool& hungry, error_code& trouble) {
    const int n = SSL_write(ssl_, to_seal_.data(), static_cast<int>(to_seal_.size()));
    if (n > 0)
      sealed_ = static_cast<std::size_t>(n);
    else
      judge(n, hungry, trouble);
  }

  void open(bool& hungry, error_code& trouble) {
    const auto size = static_cast<int>(std::min<std::size_t>(read_into_.size(), kRecordBytes));
    const int n = SSL_read(ssl_, read_into_.data(), size);
    if (n > 0) return reader_.finish({}, static_cast<std::size_t>(n));
    error_code why;
    judge(n, hungry, why);
    // The other side's farewell ends reading only.
    if (why == asio::error::eof)
      reader_.finish(why, 0);
    else
      trouble = why;
  }

  // Passes what is sealed to the stream below; a write is done once all of its bytes are there, so
  // that one that fails has passed nothing on that the other side could open.
  void flush() {
    if (writing_) return;
    if (out_at_ == out_.size()) {
      out_.resize(BIO_ctrl_pending(leaving_));
      out_at_ = 0;
      if (out_.empty()) {
        if (writer_ && sealed_ > 0) writer_.finish({}, std::exchange(sealed_, 0));
        if (half_closed_ && !writer_) under_->shutdown_write();
        return;
      }
      BIO_read(leaving_, out_.data(), static_cast<int>(out_.size()));
    }
    writing_ = true;
    ConstBuffers buffers;
    buffers.items[buffers.count++] = asio::buffer(out_.data() + out_at_, out_.size() - out_at_);
    auto done = [self = shared_from_this()](error_code ec, std::size_t n) {
      self->writing_ = false;
      if (ec) return self->fail(ec);
      self->out_at_ += n;
      if (self->out_at_ == self->out_.size() && self->out_.capacity() > kReadBytes) {
        self->out_ = {};
        self->out_at_ = 0;
      }
      self->pump();
    };
    under_->write_some(buffers, IoHandler(asio::bind_executor(executor_, std::move(done))));
  }

  void fetch() {
    if (fetching_) return;
    fetching_ = true;
    if (in_.empty()) in_.resize(kReadBytes);
    auto done = [self = shared_from_this()](error_code ec, std::size_t n) {
      self->fetching_ = false;
      if (ec == asio::error::eof) ec = asio::error::connection_reset;  // without a farewell
      if (ec) return self->fail(ec);
      BIO_write(self->arrived_, self->in_.data(), static_cast<int>(n));
      self->pump();
    };
    under_->read_some(asio::buffer(in_),
                      IoHandler(asio::bind_executor(executor_, std::move(done))));
  }

  const std::unique_ptr<Stream> under_;
  const asio::any_io_executor executor_;
  const std::shared_ptr<const TlsContext> context_;
  SSL* ssl_ = nullptr;
  BIO* arrived_ = nullptr;
  BIO* leaving_ = nullptr;

  Operation reader_, writer_;
  asio::mutable_buffer read_into_;
  std::vector<char> to_seal_;  // of writer_
  std::size_t sealed_ = 0;     // of these, once they are on their way
  std::vector<char> in_, out_;
  std::size_t out_at_ = 0;
  bool fetching_ = false, writing_ = false;  // outstanding below
  bool half_closed_ = false, closed_ = false;
  error_code failed_;
};

class TlsStream final : public Stream {
 public:
  explicit TlsStream(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
  ~TlsStream() override { engine_->close(); }
  void read_some(asio::mutable_buffer buffer, IoHandler handler) override {
    if (buffer.size() == 0) return complete(std::move(handler), error_code(), std::size_t{0});
    engine_->read(buffer, std::move(handler));
  }
  void write_some(const ConstBuffers& buffers, IoHandler handler) override {
    if (buffers.bytes() == 0) return complete(std::move(handler), error_code(), std::size_t{0});
    engine_->write(buffers, std::move(handler));
  }
  void shutdown_write() noexcept override { engine_->shutdown_write(); }
  void close() noexcept override { engine_->close(); }
  Endpoint peer() const override { return engine_->peer(); }

 private:
  std::shared_ptr<Engine> engine_;
};

// A handler of the net below that wraps the stream before it passes it on.
StreamHandler wrapping(StreamHandler handler, asio::any_io_executor executor,
                       std::shared_ptr<std::shared_ptr<const TlsContext>> context, TlsSide side) {
  auto its_executor = asio::get_associated_executor(handler);
  auto slot = asio::get_associated_cancellation_slot(handler);
  auto done = [handler = std::move(handler), executor, context, side](
                  error_code ec, std::unique_ptr<Stream> stream) mutable {
    if (stream) stream = make_tls_stream(std::move(stream), executor, *context, side);
    std::move(handler)(ec, std::move(stream));
  };
  return StreamHandler(
      asio::bind_cancellation_slot(slot, asio::bind_executor(its_executor, std::move(done))));
}

}  // namespace

// ---- certificates ------------------------------------------------------------------------------

TlsContext::~TlsContext() { SSL_CTX_free(static_cast<SSL_CTX*>(context_)); }

Result<std::shared_ptr<const TlsContext>> TlsContext::load(const TlsFiles& files) {
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  ERR_clear_error();
  SSL_CTX* ssl = SSL_CTX_new(TLS_method());
  NARAD_ASSERT(ssl != nullptr, "out of memory for TLS");
  std::shared_ptr<const TlsContext> context(new TlsContext(ssl));
  SSL_CTX_set_min_proto_version(ssl, files.ca_file.empty() ? TLS1_2_VERSION : TLS1_3_VERSION);
  SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
  // Connections are few and long; a session kept for later is memory for nothing.
  SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(ssl, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_num_tickets(ssl, 0);
  // Never ask the terminal.
  SSL_CTX_set_default_passwd_cb(ssl, [](char*, int, int, void*) { return 0; });
  if (SSL_CTX_use_certificate_chain_file(ssl, files.cert_file.c_str()) != 1)
    return load_error("the certificate", files.cert_file);
  if (SSL_CTX_use_PrivateKey_file(ssl, files.key_file.c_str(), SSL_FILETYPE_PEM) != 1)
    return load_error("the key", files.key_file);
  if (SSL_CTX_check_private_key(ssl) != 1) return load_error("the key", files.key_file);
  if (files.ca_file.empty()) return context;
  if (SSL_CTX_load_verify_locations(ssl, files.ca_file.c_str(), nullptr) != 1)
    return load_error("the CA", files.ca_file);
  SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return context;
}

// ---- streams -----------------------------------------------------------------------------------

std::unique_ptr<Stream> make_tls_stream(std::unique_ptr<Stream> under,
                                        asio::any_io_executor executor,
                                        std::shared_ptr<const TlsContext> context, TlsSide side) {
  auto engine =
      std::make_shared<Engine>(std::move(under), std::move(executor), std::move(context), side);
  return std::make_unique<TlsStream>(std::move(engine));
}

class TlsListener final : public Listener {
 public:
  TlsListener(std::unique_ptr<Listener> under, asio::any_io_executor executor,
              TlsNet::Current context)
      : under_(std::move(under)), executor_(std::move(executor)), context_(std::move(context)) {}
  void accept(StreamHandler handler) override {
    under_->accept(wrapping(std::move(handler), executor_, context_, TlsSide::accepts));
  }
  Endpoint local() const override { return under_->local(); }

 private:
  std::unique_ptr<Listener> under_;
  asio::any_io_executor executor_;
  TlsNet::Current context_;
};

TlsNet::TlsNet(Net& under, asio::any_io_executor executor,
               std::shared_ptr<const TlsContext> context)
    : under_(under),
      executor_(std::move(executor)),
      context_(std::make_shared<std::shared_ptr<const TlsContext>>(std::move(context))) {}

Result<std::unique_ptr<Listener>> TlsNet::listen(const Endpoint& at) {
  NARAD_TRY(auto under, under_.listen(at));
  return std::unique_ptr<Listener>(
      std::make_unique<TlsListener>(std::move(under), executor_, context_));
}

void TlsNet::connect(const Endpoint& to, StreamHandler handler) {
  under_.connect(to, wrapping(std::move(handler), executor_, context_, TlsSide::connects));
}

Env with_net(const Env& env, Net& net) {
  return Env{env.executor, env.clock, env.timers,  env.random,  env.fs,     env.blocking,
             net,          env.log,   env.process, env.signals, env.parking};
}

}  // namespace narad
