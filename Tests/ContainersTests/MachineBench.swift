import EventLoops
import TestKit

@testable import Containers

/// A container's machine with time moved by hand, and what it has asked for.
struct MachineBench {
    static let hour = Duration.seconds(3600)

    let time = ManualTime()
    var random = SplitMix64(seed: 1)
    var machine: ContainerMachine
    var isTrusted = true
    private(set) var effects: [ContainerMachine.Effect] = []

    init(_ change: (inout ContainerMachine.Options) -> Void = { _ in }) {
        var options = ContainerMachine.Options()
        change(&options)
        machine = ContainerMachine(options)
    }

    var moment: ContainerMoment {
        ContainerMoment(boot: time.bootTime, wall: time.wallTime, isTrusted: isTrusted)
    }

    /// What the machine says to an input.
    @discardableResult
    mutating func handle(_ input: ContainerMachine.Input) -> [ContainerMachine.Effect] {
        let new = machine.handle(input, at: moment, using: &random)
        effects += new
        return new
    }

    /// Lets time pass, with a timer whenever the machine wants one.
    @discardableResult
    mutating func wait(_ duration: Duration) -> [ContainerMachine.Effect] {
        let end = time.bootTime + duration
        var new: [ContainerMachine.Effect] = []
        while let wake = machine.wake(at: moment), wake <= end {
            time.advance(by: max(.zero, wake - time.bootTime))
            new += handle(.timer)
        }
        time.advance(by: end - time.bootTime)
        return new
    }

    var isOpen: Bool { machine.isOpen }
    var source: ContainerSource { machine.source }
    var version: Int? { machine.inForce?.copy.version }

    static func copy(_ version: Int, expires: Timestamp? = nil, _ content: String? = nil) -> ContainerCopy {
        ContainerCopy(
            version: version, expires: expires, content: Array((content ?? "document \(version)").utf8))
    }

    /// A saved copy of that age.
    func saved(_ version: Int, age: Duration, etag: String? = "\"tag\"") -> ContainerMachine.Input {
        .saved(.copy(MachineBench.copy(version), etag: etag, confirmed: time.wallTime - age))
    }

    func fetched(_ version: Int, _ content: String? = nil) -> ContainerMachine.Input {
        .fetched(.copy(MachineBench.copy(version, content), etag: "\"tag \(version)\""))
    }
}

extension [ContainerMachine.Effect] {
    var fetches: Int { count { if case .fetch = $0 { true } else { false } } }
    var opens: Int { count { $0 == .open } }
    var notes: [ContainerNote] { compactMap { if case .tell(let note) = $0 { note } else { nil } } }
    /// The results of refreshes, as they are counted.
    var results: [(RefreshType, RefreshResult)] {
        notes.compactMap { note in
            switch note {
            case .succeeded(let type, _, _): (type, .success)
            case .failed(let type, let result, _): (type, result)
            default: nil
            }
        }
    }
}
