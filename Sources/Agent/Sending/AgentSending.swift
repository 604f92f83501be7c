internal import Configuration
internal import Control
internal import Delivery
internal import EventLoops
internal import Model

/// What the control API asks of sending.
struct AgentSending: SendingControl {
    let driver: DeliveryDriver
    let containers: ContainerKeeper

    func dispatch(to destination: DestinationName?) async throws(ControlRefusal) {
        try await asked(try await driver.dispatch(to: destination))
    }

    func dispatchAndWait(
        to destination: DestinationName?, report: @escaping @Sendable (DispatchReport) -> Void
    ) async throws(ControlRefusal) -> CommandResult {
        try await asked(try await driver.dispatchAndWait(to: destination, report: report))
    }

    func drain(
        timeout: Duration, to destination: DestinationName?, report: @escaping @Sendable (DispatchReport) -> Void
    ) async throws(ControlRefusal) -> CommandResult {
        try await asked(try await driver.drain(timeout: timeout, to: destination, report: report))
    }

    func pause(
        token: String, destination: DestinationName?, ttl: Duration?, untilRestart: Bool
    ) async throws(ControlRefusal) {
        try await asked(
            try await driver.pause(token: token, destination: destination, ttl: ttl, untilRestart: untilRestart))
    }

    func resume(token: String?, destination: DestinationName?) async throws(ControlRefusal) {
        try await asked(try await driver.resume(token: token, destination: destination))
    }

    func setNetwork(on: Bool) async throws(ControlRefusal) {
        await driver.setNetwork(on: on)
        if on { await containers.networkIsOn() }
    }

    func networkChanged() async throws(ControlRefusal) { await driver.networkChanged() }

    func setInterval(_ interval: Duration?, persist: Bool) async throws(ControlRefusal) -> String {
        let wanted: DispatchInterval? = interval.map { $0 <= .zero ? .off : .every($0) }
        if case .every(let wait) = wanted, !DispatchInterval.range.contains(wait) {
            throw ControlRefusal(
                status: 400, code: "out_of_range", message: "the interval is off, or from 1s to 1d")
        }
        await driver.setInterval(wanted, isDurable: persist)
        return driver.snapshot.interval.text
    }

    /// What delivery gives; its failure is the refusal: the destination is not configured.
    private func asked<Value>(
        _ work: @autoclosure () async throws(DeliveryError) -> Value
    ) async throws(ControlRefusal) -> Value {
        do throws(DeliveryError) {
            return try await work()
        } catch {
            throw ControlRefusal(status: 404, code: error.code.rawValue, message: error.message)
        }
    }
}
