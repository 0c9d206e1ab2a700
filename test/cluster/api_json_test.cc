// JSON of the API server's: untrusted, and bounded.
#include "agent/cluster/api_json.h"

#include <catch2/catch.hpp>

#include "agent/cluster/api_answer.h"
#include "agent/cluster/node_document.h"
#include "sysfs/status.h"
#include "test/cluster/support.h"

namespace vfio_agent {

TEST_CASE("only an object that is whole and not too deep is taken") {
  CHECK(ParseApiJson(R"({"a":{"b":[1]}})").ok());
  for (const std::string& text : {std::string(), std::string("{"), std::string("[]"),
                                  std::string("7"), std::string(R"({"a":1}{"b":2})"),
                                  "{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}",
                                  "{\"a\":" + std::string(1'000'000, '{'),
                                  "{\"a\":\"" + std::string(kApiBytes, 'x') + "\"}"}) {
    CHECK(absl::IsDataLoss(ParseApiJson(text).status()));
  }
  // Brackets in texts are none.
  CHECK(ParseApiJson("{\"a\":\"\\\"" + std::string(100, '[') + "\"}").ok());
}

TEST_CASE("more values than any object has are not taken, for each costs memory") {
  const auto many = [](size_t count, const std::string& each) {
    std::string text = "{\"a\":[";
    for (size_t i = 0; i < count; ++i) text += each;
    return ParseApiJson(text + "0]}").status();
  };
  CHECK(many(199'000, "1,").ok());
  CHECK(Message(many(201'000, "1,")) == "JSON of too many values");
  CHECK(Message(many(101'000, "[],")) == "JSON of too many values");
  CHECK(ParseApiJson("{\"a\":\"" + std::string(300'000, ',') + "\"}").ok());
}

TEST_CASE("what has another type than expected is as if it were not there") {
  const ApiJson json = *ParseApiJson(R"({"a":{"b":"x","n":7,"f":1.5,"m":-1,
      "big":99999999999999999999,"huge":18446744073709551615},"l":[1]})");
  CHECK(TextAt(json, {"a", "b"}) == "x");
  CHECK(TextAt(json, {"a", "n"}).empty());
  CHECK(TextAt(json, {"a", "b", "c"}).empty());
  CHECK(TextAt(json, {"l", "b"}).empty());
  CHECK(NumberAt(json, {"a", "n"}) == 7);
  for (const char* key : {"b", "f", "m", "big", "huge", "none"}) {
    CAPTURE(key);
    CHECK(NumberAt(json, {"a", key}) == 0);
  }
}

TEST_CASE("a text is not cut within a character, and what is no UTF-8 can be sent") {
  CHECK(CutText("abc", 3) == "abc");
  CHECK(CutText("ab\xc3\xa4", 3) == "ab");
  CHECK(CutText("ab\xc3\xa4", 4) == "ab\xc3\xa4");
  CHECK(CutText("\xf0\x9f\x98\x80", 3).empty());
  CHECK(ApiJson::parse(DumpApiJson(ApiJson("a\xff"))).is_string());
}

TEST_CASE("names that go into a path are names of objects") {
  for (const char* name : {"a", "gpu-1", "ip-10-0-0-1.ec2.internal", "0"})
    CHECK(IsObjectName(name));
  for (const char* name : {"", "A", "-a", "a-", "a..b", "a/b", "..", "a?b", "a b", ".a"}) {
    CAPTURE(name);
    CHECK_FALSE(IsObjectName(name));
  }
  CHECK_FALSE(IsObjectName(std::string(254, 'a')));
}

TEST_CASE("an answer is judged by its code and told in the server's words, on one plain line") {
  const auto code_of = [](int code, const std::string& reason = "") {
    return Failure(code, "m", reason).status.code();
  };
  CHECK(Judge({.code = 201, .body = "{}"}).status.ok());
  CHECK(code_of(302) == absl::StatusCode::kUnimplemented);
  CHECK(code_of(401) == absl::StatusCode::kUnauthenticated);
  CHECK(code_of(403) == absl::StatusCode::kPermissionDenied);
  CHECK(code_of(404) == absl::StatusCode::kNotFound);
  CHECK(code_of(409, "AlreadyExists") == absl::StatusCode::kAlreadyExists);
  CHECK(code_of(409, "Conflict") == absl::StatusCode::kAborted);
  CHECK(code_of(410) == absl::StatusCode::kOutOfRange);
  CHECK(code_of(422) == absl::StatusCode::kInvalidArgument);
  CHECK(code_of(429) == absl::StatusCode::kResourceExhausted);
  CHECK(code_of(503) == absl::StatusCode::kUnavailable);
  CHECK(Message(Failure(403, "nodes is\n\x1b[31mforbidden").status) ==
        "HTTP 403: nodes is??[31mforbidden");
  CHECK(Message(Judge({.code = 502, .body = "<html>"}).status) == "HTTP 502: <html>");
  CHECK(Message(Judge({.code = 500, .body = std::string(5000, 'x')}).status).size() < 400);
}

TEST_CASE("a Node of strange shape gives what can be understood of it") {
  for (const char* text : {R"({})", R"({"metadata":[]})", R"({"metadata":{"labels":["a"]}})",
                           R"({"metadata":{"labels":{"a":1}},"status":{"conditions":{}}})",
                           R"({"status":{"conditions":[1,null,"x",{}]}})"}) {
    CAPTURE(text);
    const ApiNode facts = ReadNode(*ParseApiJson(text));
    CHECK(facts.labels.empty());
    CHECK(facts.uid.empty());
    CHECK(facts.Find("PassthroughReady") == nullptr);
  }
  std::string many = R"({"status":{"conditions":[{})";
  for (int i = 0; i < 1000; ++i) many += ",{}";
  CHECK(ReadNode(*ParseApiJson(many + "]}}")).conditions.size() <= 256);
}

}  // namespace vfio_agent
