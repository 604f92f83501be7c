/// One place that `privacy prove` searched, with what was found there.
struct ProofPlace {
    /// What is expected in a place.
    enum Kind {
        /// Traces of the agent, which need not hold any event.
        case trace
        /// Events in any case: without any, the place proves nothing.
        case output
        /// Events, too: what a receiver got.
        case receiver
        /// Lines in any case, as rows of a table. Most are kept as shapes, in which no control is found.
        case lines
    }

    /// The name that is printed.
    let name: String
    var kind = Kind.trace
    /// How often the marker occurs there.
    var found = 0
    /// How often the control occurs there: whether events have been there.
    var controls = 0
    /// Number of rows that were searched, if the place is a table.
    var rows = 0
    /// Whether all of it was searched: not if something of it cannot be read or is too large.
    var isSearched = true

    /// What the search shows.
    enum Verdict: Equatable {
        /// How often the marker is there.
        case found(Int)
        /// Not all of the place could be searched.
        case notSearched
        /// Events may not have reached the place yet.
        case notProved
        /// A place to which events come in any case got none.
        case nothingCame
        /// Events were there, or nothing that shows them is expected there, and the marker is not.
        case notFound
    }

    /// What the search of the place shows. A marker that was found decides first.
    ///
    /// - Parameter isLate: whether the run gave up waiting for some events.
    func verdict(isLate: Bool) -> Verdict {
        if found > 0 { return .found(found) }
        if !isSearched { return .notSearched }
        if isLate { return .notProved }
        let isEmpty =
            switch kind {
            case .trace: false
            case .output, .receiver: controls == 0
            case .lines: rows == 0
            }
        return isEmpty ? .nothingCame : .notFound
    }

    /// What shows that events were there, in words.
    var evidence: String {
        if controls > 0 { return "\(controls) other values of the events" }
        return kind == .lines && rows > 0
            ? "\(rows) lines, as shapes without values" : "and no other value of the events"
    }

    /// The sums of two parts of the same place.
    static func + (left: ProofPlace, right: ProofPlace) -> ProofPlace {
        ProofPlace(
            name: left.name, kind: left.kind, found: left.found + right.found,
            controls: left.controls + right.controls, rows: left.rows + right.rows,
            isSearched: left.isSearched && right.isSearched)
    }
}
