internal import Configuration
internal import Control
internal import Delivery
internal import Model

/// What the control API asks of sending.
struct AgentSending: SendingControl {
    let driver: DeliveryDriver
    let containers: ContainerKeeper

    func dispatch(to destination: String?) async throws(ControlRefusal) {
        do throws(DeliveryError) {
            try await driver.dispatch(to: destination.map { DestinationName($0) })
        } catch {
            throw ControlRefusal(error)
        }
    }

    func dispatchAndWait(
        to destination: String?, report: @escaping @Sendable (SendingReport) -> Void
    ) async throws(ControlRefusal) -> SendingResult {
        do throws(DeliveryError) {
            return SendingResult(
                try await driver.dispatchAndWait(to: destination.map { DestinationName($0) }) {
                    report(SendingReport($0))
                })
        } catch {
            throw ControlRefusal(error)
        }
    }

    func drain(
        timeout: Duration, to destination: String?, report: @escaping @Sendable (SendingReport) -> Void
    ) async throws(ControlRefusal) -> SendingResult {
        do throws(DeliveryError) {
            return SendingResult(
                try await driver.drain(timeout: timeout, to: destination.map { DestinationName($0) }) {
                    report(SendingReport($0))
                })
        } catch {
            throw ControlRefusal(error)
        }
    }

    func pause(
        token: String, destination: String?, ttl: Duration?, untilRestart: Bool
    ) async throws(ControlRefusal) {
        do throws(DeliveryError) {
            try await driver.pause(
                token: token, destination: destination.map { DestinationName($0) }, ttl: ttl,
                untilRestart: untilRestart)
        } catch {
            throw ControlRefusal(error)
        }
    }

    func resume(token: String?, destination: String?) async throws(ControlRefusal) {
        do throws(DeliveryError) {
            try await driver.resume(token: token, destination: destination.map { DestinationName($0) })
        } catch {
            throw ControlRefusal(error)
        }
    }

    func setNetwork(on: Bool) async throws(ControlRefusal) {
        await driver.setNetwork(on: on)
        if on { await containers.networkIsOn() }
    }

    func networkChanged() async throws(ControlRefusal) { await driver.networkChanged() }

    func setInterval(_ interval: Duration?, persist: Bool) async throws(ControlRefusal) -> String {
        let wanted: DispatchInterval? = interval.map { $0 <= .zero ? .off : .every($0) }
        if case .every(let wait) = wanted, wait < .seconds(1) || wait > .seconds(86_400) {
            throw ControlRefusal(
                status: 400, code: "out_of_range", message: "the interval is off, or from 1s to 1d")
        }
        await driver.setInterval(wanted, isDurable: persist)
        return driver.snapshot.interval.text
    }
}

extension ControlRefusal {
    fileprivate init(_ error: DeliveryError) {
        self.init(
            status: error.code == .unknownDestination ? 404 : 400, code: error.code.rawValue, message: error.message)
    }
}

extension SendingReport {
    fileprivate init(_ report: DispatchReport) {
        switch report {
        case .good(let name, let waiting):
            self.init(destination: name.text, outcome: "good", waiting: waiting)
        case .noData(let name, let reason):
            // With nothing left the figure is known; with something in the way it is not the report's to tell.
            self.init(
                destination: name.text, outcome: "no_data", reason: reason.rawValue, waiting: reason == .empty ? 0 : nil
            )
        case .error(let name, let failure, let waiting):
            self.init(destination: name.text, outcome: "error", reason: failure.message, waiting: waiting)
        }
    }
}

extension SendingResult {
    fileprivate init(_ result: CommandResult) {
        switch result {
        case .done:
            self.init(exitCode: Int(result.exitCode), waiting: 0)
        case .cancelled:
            self.init(exitCode: Int(result.exitCode))
        case .stuck(let reasons):
            let obstacles = reasons.map { ($0.key.text, $0.value.rawValue) }
            self.init(exitCode: Int(result.exitCode), obstacles: Dictionary(uniqueKeysWithValues: obstacles))
        case .timedOut(let waiting):
            self.init(exitCode: Int(result.exitCode), waiting: waiting)
        }
    }
}
