internal import Model

// The life of an append file, and what always holds.
//
//                  meet                    judged
//     a new name ───────▶ suspect ───────────────────▶ reading ◀──────────┐
//          │                 ▲                         │ │ ▲ ▲            │
//          │   meet          │ changed (a copy over    │ │ │ │ changed    │ stay (somebody came)
//          ├─────────────────┼─ an older copy)         │ │ │ └──── cut    │
//          │                 └─────────────────────────┘ │ │       ▲      │
//          ▼                       changed (set back)    │ └──┐    │      │
//       reading                                          │    │ changed ──┤
//                                                        ▼    │ (later)   │
//                                                     leaving ────────────┘
//                                                        │
//                                              leave     ▼
//     any without a name and without unread bytes ───▶ gone ──▶ remembered ──▶ meet, or forgotten a day later
//
// Its name: written ──move──▶ rotated ──displace──▶ none ──move──▶ rotated.
// What it holds: taken goes forward by `took` and back by `changed`, which leaves a content behind among what is remembered.
extension Streams {
    /// Stops a debug build at what broke one of these rules for a file.
    ///
    /// 1. What is durable was taken: `committed` is never beyond `taken`.
    /// 2. Marks ascend, and none is beyond `taken`.
    /// 3. The fingerprint is of bytes that were taken.
    /// 4. Of a suspect nothing was taken, and it is on the list of suspects; nothing else is.
    /// 5. A file is found by its name and by its identity, or has no name; then it is on the list of those that have none.
    /// 6. What is known is not also remembered: of one identity there is one place.
    /// 7. Nothing is taken twice: `took` goes forward (`assertForward`). Only `changed` goes back, to bytes that are others now.
    @inline(__always)
    func assertWhole(_ file: AppendFile) { assert(broken(file) == nil, broken(file) ?? "") }

    @inline(__always)
    func assertForward(_ file: AppendFile, _ place: Mark) {
        assert(place.offset > file.taken.offset, "7: \(file.taken.offset) is followed by \(place.offset)")
        assert(!file.isSuspect, "4: a suspect is read")
    }

    private func broken(_ file: AppendFile) -> String? {
        guard files[file.id] === file else { return nil }
        let marks = file.trace.marks
        let taken = file.taken.offset
        if file.committed > taken { return "1: durable to \(file.committed), taken to \(taken)" }
        let isAscending = zip(marks, marks.dropFirst()).allSatisfy { $0.offset < $1.offset }
        guard isAscending, marks.last?.offset ?? 0 <= taken else { return "2: marks \(marks.map(\.offset)), \(taken)" }
        if file.trace.fingerprint.length > file.taken.offset { return "3: a fingerprint of bytes that were not taken" }
        if (file.isSuspect) != (suspects[file.id] != nil) { return "4: the list of suspects is another" }
        if file.isSuspect, file.taken.offset > 0 { return "4: of a suspect something was taken" }
        if file.hasName == (nameless[file.id] != nil) { return "5: the list of those without a name is another" }
        if remembered.kept[file.id] != nil { return "6: it is known and remembered" }
        return nil
    }
}
