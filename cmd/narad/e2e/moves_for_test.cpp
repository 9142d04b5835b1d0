#include "cmd/narad/e2e/moves_for_test.h"

#include <boost/json.hpp>
#include <charconv>
#include <filesystem>

#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;

// What node `asked` answers; null if it does not.
json::value ask(Cluster& cluster, std::size_t asked, const std::string& target) {
  if (!cluster.node(asked).child().running()) return nullptr;
  auto answer = cluster.node(asked).client().get(target);
  if (!answer || answer->status != 200) return nullptr;
  return json::parse(answer->body);
}

}  // namespace

std::map<std::string, int> owned_by(Cluster& cluster, std::size_t asked) {
  std::map<std::string, int> owned;
  const json::value body = ask(cluster, asked, "/v1/cluster/members");
  if (body.is_null()) return owned;
  for (const auto& member : body.at("members").as_array()) {
    owned[std::string(member.at("id").as_string())] =
        member.at("owned_partitions").to_number<int>();
  }
  return owned;
}

std::size_t moves_under_way(Cluster& cluster, std::size_t asked) {
  const json::value body = ask(cluster, asked, "/v1/cluster/moves");
  return body.is_null() ? 999 : body.at("moves").as_array().size();
}

std::map<std::int64_t, std::string> owners(Cluster& cluster, std::size_t asked) {
  std::map<std::int64_t, std::string> out;
  const json::value body = ask(cluster, asked, "/v1/topics/orders");
  if (body.is_null()) return out;
  for (const auto& stat : body.at("partition_stats").as_array()) {
    out[stat.at("index").as_int64()] = std::string(stat.at("owner_node").as_string());
  }
  return out;
}

std::map<std::int64_t, std::set<std::string>> holders(Cluster& cluster,
                                                      const std::set<std::string>& nodes) {
  std::map<std::int64_t, std::set<std::string>> out;
  for (const std::string& node : nodes) {
    std::error_code none;
    const std::string topic = cat(cluster.directory(), "/", node, "/topics/orders");
    for (const auto& entry : fs::directory_iterator(topic, none)) {
      const std::string name = entry.path().filename();
      std::int64_t index = 0;
      const char* end = name.data() + name.size();
      if (name.size() < 2 || name[0] != 'p') continue;
      const auto [at, error] = std::from_chars(name.data() + 1, end, index);
      if (error == std::errc() && at == end) out[index].insert(node);
    }
  }
  return out;
}

std::set<std::string> left_behind(Cluster& cluster, const std::string& node) {
  std::set<std::string> paths;
  std::error_code none;
  const std::string disk = cat(cluster.directory(), "/", node);
  for (const char* place : {"/.moves", "/.quarantine"}) {
    for (const auto& entry : fs::directory_iterator(disk + place, none)) {
      paths.insert(entry.path());
    }
  }
  for (const auto& entry : fs::directory_iterator(disk + "/topics/orders", none)) {
    const std::string path = entry.path();
    if (path.find(".quarantine") != std::string::npos) paths.insert(path);
  }
  return paths;
}

std::string describe(Cluster& cluster, std::size_t asked) {
  auto members = cluster.node(asked).client().get("/v1/cluster/members");
  auto moves = cluster.node(asked).client().get("/v1/cluster/moves?detail=1");
  return cat(members ? members->body : "?", moves ? moves->body : "?");
}

std::string history(Cluster& cluster, std::size_t asked) {
  auto answer = cluster.node(asked).client().get("/v1/cluster/moves?history=1");
  return answer ? answer->body : std::string();
}

bool accepted_more(const Producers& load, std::size_t more) {
  const std::size_t goal = load.accepted() + more;
  return soon([&] { return load.accepted() >= goal; }, std::chrono::seconds(60));
}

}  // namespace narad::e2e
