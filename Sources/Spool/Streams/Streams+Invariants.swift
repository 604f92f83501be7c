internal import Model

// The life of an append file, and the invariants of `Streams`. The labels of the arrows are its functions.
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
// Its read position (`taken`) goes forward in `took` and back in `changed`, which remembers the old content.
extension Streams {
    /// Sizes of all tables, for tests: what grows with files and names shrinks with them.
    var sizes: [String: Int] {
        let own = [
            "files": files.count, "indexed": indexedCount, "unread": unread.count, "nameless": nameless.count,
            "suspects": suspects.count, "cut off": cutOffs.count,
        ]
        return own.merging(remembered.sizes) { own, _ in own }
    }

    /// Stops a debug build at the transition that broke one of these rules for a file.
    ///
    /// 1. Durable bytes were taken: `committed` is never beyond `taken`.
    /// 2. Marks ascend, and no mark is beyond `taken`.
    /// 3. The fingerprint covers only bytes that were taken.
    /// 4. Nothing of a suspect was taken, and `suspects` holds exactly the suspects.
    /// 5. `nameless` holds exactly the files without a name.
    /// 6. A known file is not remembered too: each identity has one position.
    /// 7. No byte is taken twice: `took` goes forward (`assertForward`). Only `changed` goes back, to bytes
    /// that differ now.
    @inline(__always)
    func assertWhole(_ file: AppendFile) { assert(broken(file) == nil, broken(file) ?? "") }

    /// Stops a debug build if a position does not go forward (rule 7) or if a suspect is read (rule 4).
    @inline(__always)
    func assertForward(_ file: AppendFile, _ mark: Mark) {
        assert(mark.offset > file.taken.offset, "7: \(file.taken.offset) is followed by \(mark.offset)")
        assert(!file.isSuspect, "4: a suspect is read")
    }

    /// The first broken rule; nil if all hold, or if the file is not known any more.
    private func broken(_ file: AppendFile) -> String? {
        guard files[file.id] === file else { return nil }
        let marks = file.trace.marks
        let taken = file.taken.offset
        if file.committed > taken { return "1: durable to \(file.committed), taken to \(taken)" }
        let isAscending = zip(marks, marks.dropFirst()).allSatisfy { $0.offset < $1.offset }
        guard isAscending, marks.last?.offset ?? 0 <= taken else {
            return "2: marks \(marks.map(\.offset)), \(taken)"
        }
        if file.trace.fingerprint.length > file.taken.offset {
            return "3: a fingerprint of bytes that were not taken"
        }
        if (file.isSuspect) != (suspects[file.id] != nil) { return "4: the list of suspects is another" }
        if file.isSuspect, file.taken.offset > 0 { return "4: of a suspect something was taken" }
        if file.hasName == (nameless[file.id] != nil) {
            return "5: the list of those without a name is another"
        }
        if remembered.kept[file.id] != nil { return "6: it is known and remembered" }
        return nil
    }
}
