#include "cre2.h"

#include <re2/filtered_re2.h>
#include <re2/re2.h>

#include <cctype>
#include <cstring>
#include <new>
#include <string>
#include <vector>

/// The letters and digits that a text must begin with where a simple expression begins with `^` and them: RE2 finds that
/// out itself, ten times as slowly. Empty where the expression is not that simple.
static std::string prefix_of(re2::StringPiece text, bool ignore_case) {
    std::string all(text.data(), text.size());
    // Alternatives need not begin so, and flags change what `^` means.
    if (ignore_case || all.empty() || all[0] != '^') return "";
    if (all.find('|') != std::string::npos || all.find("(?") != std::string::npos) return "";
    size_t end = 1;
    while (end < all.size() && (std::isalnum((unsigned char)all[end]) || std::strchr(" _-/:,", all[end]))) end++;
    // What is repeated may be missing.
    if (end > 1 && end < all.size() && std::strchr("*?+{", all[end])) end--;
    return all.substr(1, end - 1);
}

struct cre2_expression {
    re2::RE2 expression;
    std::string prefix;
    cre2_expression(re2::StringPiece text, const re2::RE2::Options &options)
        : expression(text, options), prefix(prefix_of(text, !options.case_sensitive())) {}
};

static re2::RE2::Options options_for(bool ignore_case, int64_t memory) {
    re2::RE2::Options options(re2::RE2::Quiet);
    options.set_case_sensitive(!ignore_case);
    options.set_max_mem(memory);
    options.set_never_capture(true);
    return options;
}

cre2_expression *cre2_compile(
    const char *text, size_t length, bool ignore_case, int64_t memory, char *message, size_t size) {
    re2::RE2::Options options = options_for(ignore_case, memory);
    auto *made = new (std::nothrow) cre2_expression(re2::StringPiece(text, length), options);
    const char *why = made == nullptr ? "out of memory" : made->expression.ok() ? nullptr : made->expression.error().c_str();
    if (why == nullptr) return made;
    if (size > 0) {
        std::strncpy(message, why, size - 1);
        message[size - 1] = 0;
    }
    delete made;
    return nullptr;
}

bool cre2_finds(const cre2_expression *expression, const char *text, size_t length) {
    size_t known = expression->prefix.size();
    const char *prefix = expression->prefix.data();
    if (known > length || (known > 0 && (text[0] != prefix[0] || std::memcmp(text, prefix, known) != 0))) return false;
    return re2::RE2::PartialMatch(re2::StringPiece(text, length), expression->expression);
}

bool cre2_find(
    const cre2_expression *expression, const char *text, size_t length, size_t from, size_t *start, size_t *end) {
    re2::StringPiece found;
    if (!expression->expression.Match(
            re2::StringPiece(text, length), from, length, re2::RE2::UNANCHORED, &found, 1))
        return false;
    *start = found.data() - text;
    *end = *start + found.size();
    return true;
}

/// Whether a text with all of these pieces but one may match; with none of them, where `none`.
static bool may_match_without(const re2::FilteredRE2 &filter, size_t pieces, size_t without, bool none) {
    std::vector<int> present, possible;
    for (size_t piece = 0; piece < pieces && !none; piece++)
        if (piece != without) present.push_back((int)piece);
    filter.AllPotentials(present, &possible);
    return !possible.empty();
}

uint64_t cre2_required_pairs(const char *text, size_t length, bool ignore_case, int64_t memory) {
    // RE2 knows the literal pieces of an expression, in small letters, and tells by those that are in a text whether it may
    // match. Which of them it cannot do without is asked one by one.
    const int shortest = 2;
    re2::FilteredRE2 filter(shortest);
    int id = 0;
    std::vector<std::string> pieces;
    if (filter.Add(re2::StringPiece(text, length), options_for(ignore_case, memory), &id) != re2::RE2::NoError) return 0;
    filter.Compile(&pieces);
    uint64_t required = 0, common = ~(uint64_t)0;
    for (size_t piece = 0; piece < pieces.size(); piece++) {
        uint64_t pairs = cre2_pairs(pieces[piece].data(), pieces[piece].size());
        if (~pairs == 0) pairs = 0;
        common &= pairs;
        if (!may_match_without(filter, pieces.size(), piece, false)) required |= pairs;
    }
    // Of alternatives one must be there: what all of them have.
    if (!pieces.empty() && !may_match_without(filter, pieces.size(), 0, true)) required |= common;
    return required;
}

void cre2_free(cre2_expression *expression) { delete expression; }

bool cre2_contains(const void *text, size_t length, const void *part, size_t part_length) {
    if (part_length == 0) return true;
    // Most texts lack even the first byte, or have it once or twice: memmem begins with a table, which costs more than
    // all of that. Beyond a few it keeps the time linear.
    const char *place = (const char *)text, *end = place + length;
    for (int tries = 0; tries < 4 && (size_t)(end - place) >= part_length; tries++) {
        place = (const char *)std::memchr(place, *(const char *)part, end - place - part_length + 1);
        if (place == nullptr) return false;
        if (std::memcmp(place, part, part_length) == 0) return true;
        place++;
    }
    return (size_t)(end - place) >= part_length && memmem(place, end - place, part, part_length) != nullptr;
}

struct cre2_groups {
    re2::RE2 expression;
    cre2_groups(re2::StringPiece text, const re2::RE2::Options &options) : expression(text, options) {}
};

cre2_groups *cre2_compile_groups(const char *text, size_t length, int64_t memory, char *message, size_t size) {
    re2::RE2::Options options(re2::RE2::Quiet);
    options.set_max_mem(memory);
    options.set_dot_nl(true);
    auto *made = new (std::nothrow) cre2_groups(re2::StringPiece(text, length), options);
    const char *why = made == nullptr ? "out of memory" : made->expression.ok() ? nullptr : made->expression.error().c_str();
    if (why == nullptr) return made;
    if (size > 0) {
        std::strncpy(message, why, size - 1);
        message[size - 1] = 0;
    }
    delete made;
    return nullptr;
}

size_t cre2_group_count(const cre2_groups *groups) { return (size_t)groups->expression.NumberOfCapturingGroups(); }

size_t cre2_group_name(const cre2_groups *groups, size_t group, char *name, size_t size) {
    const auto &names = groups->expression.CapturingGroupNames();
    auto found = names.find((int)group);
    if (found == names.end() || found->second.size() > size) return 0;
    std::memcpy(name, found->second.data(), found->second.size());
    return found->second.size();
}

bool cre2_groups_match(const cre2_groups *groups, const uint8_t *text, size_t length, cre2_range *places, size_t count) {
    // The whole match and 64 groups.
    re2::StringPiece found[65];
    re2::StringPiece whole((const char *)text, length);
    int wanted = count == 0 ? 0 : (int)(count < 64 ? count : 64) + 1;
    if (!groups->expression.Match(whole, 0, length, re2::RE2::UNANCHORED, found, wanted)) return false;
    for (size_t group = 0; group < count; group++) {
        const re2::StringPiece &piece = found[group < 64 ? group + 1 : 0];
        places[group].start = group < 64 && piece.data() != nullptr ? piece.data() - (const char *)text : -1;
        places[group].length = (int64_t)piece.size();
    }
    return true;
}

void cre2_groups_free(cre2_groups *groups) { delete groups; }
