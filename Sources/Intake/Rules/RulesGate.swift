internal import Containers
internal import EventLoops
internal import Model

/// Whether the next line may be read, by what the containers' rules still need for it: a document, the answer
/// of a function, or room for a call. Lines that may not be read are offered again.
struct RulesGate {
    /// What an event waits for that the rules did not let through.
    enum Obstacle {
        /// The answer of a function, or a free place to ask it.
        case question
        /// Calls of functions that tags asked for: too many of the app wait.
        case fullCalls
        /// The document of a container that is required for this app: without it, it is unknown what must be
        /// hidden.
        case document
    }

    /// Containers' rules; nil if there cannot be any.
    let rules: IntakeRules?
    /// Calls of functions that tags ask for.
    let calls: TagCalls
    /// Whether the events are of another time. Their owners report a missing document themselves, and try
    /// again.
    let isOld: Bool
    /// What the first line that was not taken waits for, after a `take` that took less than all; nil: a
    /// commit.
    private(set) var obstacle: Obstacle?
    /// Calls that tags gave to apps, until their events are durable.
    private var offered: [(call: AppCall, app: String)] = []
    /// Most of these between two commits; further calls are lost.
    private static let mostOffered = 1024

    init(_ rules: IntakeRules?, _ calls: TagCalls, isOld: Bool) {
        self.rules = rules
        self.calls = calls
        self.isOld = isOld
    }

    /// Begins to offer lines.
    mutating func reset() { obstacle = nil }

    /// Notes the obstacle. Always returns false, so that callers can return the result.
    mutating func stop(at found: Obstacle) -> Bool {
        obstacle = found
        return false
    }

    /// Whether events of an app may be read: the documents that must rule them are there.
    mutating func mayRead(_ app: String) -> Bool {
        rules?.awaited(for: app) == nil || stop(at: .document)
    }

    /// Whether another event of an app may ask for calls.
    mutating func mayCall(_ app: String) -> Bool { !calls.isFull(for: app) || stop(at: .fullCalls) }

    /// Keeps calls that tags gave to an app until their event is durable. Old events call no app, which would
    /// take them for news.
    mutating func offer(_ calls: [AppCall], of app: String) {
        for call in calls {
            if isOld || offered.count >= RulesGate.mostOffered {
                rules?.engine.note(.unheardCall)
            } else {
                offered.append((call, app))
            }
        }
    }

    /// Whether calls wait for the next commit.
    var holdsCalls: Bool { calls.hasNew || !offered.isEmpty }

    /// The calls for apps that the next commit makes durable.
    mutating func takeOffered() -> [(call: AppCall, app: String)] {
        defer { offered = [] }
        return offered
    }

    /// Calls `resume` as soon as the lines that were left can be offered again. Returns false, and does not
    /// keep `resume`, if a commit must come first.
    func park(_ resume: @escaping () -> Void) -> Bool {
        switch obstacle {
        case .question?: rules?.whenAnswered(resume)
        // A call is made only after a commit has stored it. While new calls wait for the commit, no call
        // can end and make room.
        case .fullCalls? where !calls.hasNew: calls.whenRoom(resume)
        case .document? where !isOld: rules?.whenPublished(resume)
        case .document?, .fullCalls?, nil: return false
        }
        return true
    }
}
