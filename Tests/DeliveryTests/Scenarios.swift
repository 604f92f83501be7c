@testable import Delivery
import EventLoops
import Model
import TestKit

/// Options of one destination, `main`, without the spread at the start.
func options(
    interval: DispatchInterval = .every(.seconds(6)), batchOnSize: Bool = true,
    _ change: (inout DestinationOptions) -> Void = { _ in }
) -> DeliveryOptions {
    var main = DestinationOptions(name: "main")
    change(&main)
    return DeliveryOptions(
        interval: interval, batchOnSize: batchOnSize, startSpread: .zero, destinations: [main])
}

extension Failure {
    static let unavailable = Failure(kind: .status, status: 503, message: "the destination is unavailable")
    static let badRequest = Failure(kind: .status, status: 400, message: "the destination rejects the events")
    static let unauthorised = Failure(
        kind: .status, status: 401, message: "the destination refuses the credentials")
    static let tooLarge = Failure(kind: .status, status: 413, message: "the body is too large")
}

extension DeliveryCounters {
    /// Attempts that the destination answered or failed to; those without a route are none.
    var attempts: Int { answers.filter { $0.key.outcome != "offline" }.values.reduce(0, +) }
}

extension World {
    /// What the destination was sent, by the number of events.
    var sizes: [Int] { sent.map(\.events.count) }

    /// When each attempt began, from the start of the test.
    func times(since start: BootInstant) -> [Duration] { sent.map { $0.at - start } }

    /// How often a person should have looked: holds and open breakers.
    var alerts: Int {
        notes.count {
            switch $0 {
            case .held, .breakerOpened: true
            default: false
            }
        }
    }

    /// The settings in force of a destination.
    func options(of name: DestinationName) -> DestinationOptions? {
        machine.options.destinations.first { $0.name == name }
    }

    /// The destinations that `status` shows.
    var names: [DestinationName] { machine.snapshot(at: now).destinations.map(\.name) }

    /// The destination as `status` shows it.
    var shown: DeliverySnapshot.Destination {
        let all = machine.snapshot(at: now).destinations
        return all.first { $0.name == "main" } ?? all[0]
    }

    /// Whether only probes are sent because the destination refuses, for a person to look at or for a moment.
    var isHeld: Bool { shown.obstacle == .held || shown.obstacle == .waitingForRetry }

    /// Whether the log says that the destination is held, and not yet that this is over.
    var saysHeld: Bool {
        for note in notes.reversed() {
            switch note {
            case .held: return true
            case .holdLifted: return false
            default: continue
            }
        }
        return false
    }

    /// Whether nothing waits for a retry, and nothing is set aside.
    var keepsNothing: Bool { shown.waitingForRetry == 0 && shown.setAside.isEmpty }

    /// How long until something is sent without a command; nil if nothing is planned.
    var nextIn: Duration? { shown.nextAttempt.map { $0 - wall } }

    /// Whether only probes are sent because the destination has failed too often.
    var isBroken: Bool { shown.obstacle == .breakerOpen }

    var main: DestinationMachine {
        (machine.destinations["main"] ?? machine.destinations[machine.destinations.names[0]])
            .unsafelyUnwrapped
    }
}

/// What a call returned that changes a value: `#expect` cannot make such a call itself.
func did<Value>(_ value: Value) -> Value { value }

/// Draws the least of each range: waits keep their whole length.
struct NoJitter: RandomNumberGenerator {
    mutating func next() -> UInt64 { 1 }
}

extension Standing {
    /// Why a destination is held.
    enum Cause {
        /// It refuses requests, and a person has to act.
        case refusal
        /// It refuses requests, which may pass.
        case passing
        /// It rejects events, which may be at fault themselves.
        case rejection
    }

    /// Holds a destination in place of any other hold.
    mutating func hold(for cause: Cause, nextProbe: BootInstant? = nil, at now: Moment) {
        _ = liftHold()
        var noJitter = NoJitter()
        if cause == .rejection {
            beginDoubt(.badRequest, isProbe: true, at: now)
        } else {
            _ = refuse(
                .unauthorised, isAgain: false, isProbe: true, isPatient: cause == .passing,
                fresh: Patience(at: now.boot), DestinationOptions(name: "main"), using: &noJitter, at: now)
        }
        if let nextProbe {
            setHoldProbe(to: nextProbe)
        }
    }
}

extension TrackedBatch {
    /// A batch that nothing is remembered of; each has an id of its own if the seeds differ.
    static func made(
        events: Int = 1, notBefore: BootInstant = BootInstant(nanoseconds: 0), seed: UInt64 = 1
    ) -> TrackedBatch {
        var ids = UUIDv7Generator()
        var random = SplitMix64(seed: seed)
        let header = BatchHeader(
            id: ids.next(at: Timestamp(milliseconds: 1), using: &random), destination: "main",
            priority: .normal, events: events, bytes: 100 * events,
            acceptedAt: Timestamp(milliseconds: 1), firstEventTime: Timestamp(milliseconds: 1))
        return TrackedBatch(header: header, notBefore: notBefore)
    }
}

extension Backlog {
    /// What waits in two lanes, with no batch kept or on its way.
    static func made(_ views: PerPriority<LaneView>, _ attempts: Attempts.Counts = .init()) -> Backlog {
        let options = DestinationOptions(name: "main")
        return Backlog(
            options: options, views: views, attempts: attempts, kept: Kept.Counts(),
            mostEvents: options.mostEvents, maxBytes: options.batchBytes, suspectsFree: false)
    }
}
