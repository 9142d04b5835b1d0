#pragma once
// For tests: a certificate authority of its own, and certificates signed by it, as PEM files.
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include "pkg/env/real/tls.h"

namespace narad::testing {

class CertificateAuthority {
 public:
  // Files go to a directory of their own, which the destructor removes.
  explicit CertificateAuthority(const std::string& name)
      : dir_(std::filesystem::temp_directory_path() /
             ("narad-ca-" + name + "-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(dir_);
    key_ = EVP_EC_gen("P-256");
    certificate_ = sign(name, key_, nullptr, 3600);
    write_certificate(path("ca"), certificate_);
  }
  ~CertificateAuthority() {
    X509_free(certificate_);
    EVP_PKEY_free(key_);
    std::filesystem::remove_all(dir_);  // of this object alone
  }
  CertificateAuthority(const CertificateAuthority&) = delete;

  std::string ca_file() const { return path("ca"); }
  // A new certificate and key; valid until `seconds` from now.
  TlsFiles issue(const std::string& name, long seconds = 3600) {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* certificate = sign(name, key, certificate_, seconds);
    write_certificate(path(name), certificate);
    std::FILE* out = std::fopen(path(name + ".key").c_str(), "w");
    EXPECT_EQ(PEM_write_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr), 1);
    std::fclose(out);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return TlsFiles{path(name), path(name + ".key"), ca_file()};
  }

 private:
  std::string path(const std::string& name) const { return (dir_ / (name + ".pem")).string(); }
  X509* sign(const std::string& name, EVP_PKEY* key, X509* issuer, long seconds) {
    X509* x = X509_new();
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(x), -7200);
    X509_gmtime_adj(X509_getm_notAfter(x), seconds);
    X509_set_pubkey(x, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(issuer == nullptr ? x : issuer));
    if (issuer == nullptr) {
      X509_EXTENSION* e =
          X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, "critical,CA:TRUE");
      X509_add_ext(x, e, -1);
      X509_EXTENSION_free(e);
    }
    EXPECT_GT(X509_sign(x, key_, EVP_sha256()), 0);
    return x;
  }
  static void write_certificate(const std::string& file, X509* x) {
    std::FILE* out = std::fopen(file.c_str(), "w");
    EXPECT_EQ(PEM_write_X509(out, x), 1);
    std::fclose(out);
  }

  std::filesystem::path dir_;
  EVP_PKEY* key_ = nullptr;
  X509* certificate_ = nullptr;
  long serial_ = 0;
};

}  // namespace narad::testing
