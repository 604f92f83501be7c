internal import Configuration
internal import Control
internal import EventLoops
internal import Glibc
internal import Intake
internal import Metrics
internal import Model
internal import Queue
internal import Synchronization

/// Opens the ports at which the agent is asked: the control socket and the figures.
extension AgentService {
    /// Opens both, or neither.
    func openPorts(
        _ parts: Parts, _ restored: RestoredState, _ rules: IntakeRules, _ tap: EventTap
    ) async throws(AgentError) {
        let queue = parts.queue
        let status = AgentStatus(agent: self, parts: parts)
        let rereader = Rereader(
            on: readerLoop, store: queue, memory: restored.memory, rules: rules, time: time, clock: clockTrust(queue),
            log: log
        ) { await self.intakeSettings(cap: queue.snapshot.maxSize) }
        var routes = ControlRoutes()
        routes.addStatus { await status.status() }
        routes.addSwitches(of: self)
        routes.addSending(parts.driver, parts.queue, parts.containers)
        routes.addRecords(
            AgentRecords(
                queue: queue, rereader: rereader, spool: parts.reader.spool, maxEventSize: settings.spool.maxEventSize,
                time: time, deadlines: { await self.deadlines }, driver: parts.driver, log: log))
        routes.addTap(tap)
        routes.addBackfill(parts.backfill)
        routes.addContainers(parts.containers)
        let control = try await startControl(routes)
        self.control = control
        // An agent with a task ends before anybody could ask for more than its answers.
        guard task == nil else { return await parts.ports.watch([]) }
        do throws(AgentError) {
            stats = try await startStats(status, control)
        } catch {
            await control.stop()
            throw error
        }
        await parts.restart.start()
        await parts.ports.watch([control] + (stats.map { [$0] } ?? []))
    }

    private func startControl(_ routes: ControlRoutes) async throws(AgentError) -> ControlServer {
        // The default group exists where the package was installed; elsewhere the agent's own does.
        let isDefault = settings.origin(of: "control.group") == .standard
        let group = isDefault && getgrnam(settings.control.group) == nil ? nil : settings.control.group
        // An event may be larger than the usual request.
        let largestBody = max(1 << 20, settings.spool.maxEventSize + 1)
        do throws(ControlError) {
            let server = try ControlServer(
                on: loop, socket: settings.control.socket, group: group, largestBody: largestBody, routes: routes)
            try await server.start()
            return server
        } catch {
            // A group that is not there does not come by starting again.
            switch error.code {
            case .badAddress: throw AgentError(.configuration, error.message)
            case .notPermitted: throw AgentError(.noPermission, error.message)
            default: throw AgentError(.inUse, error.message)
            }
        }
    }

    private func startStats(_ status: AgentStatus, _ control: ControlServer) async throws(AgentError) -> StatsServer? {
        guard let listen = settings.stats.listen else { return nil }
        let parts = status.parts
        let collectors: [any MetricCollector] =
            [
                AgentCollector(agent: self, parts: parts), parts.notice, parts.unread, sending,
                parts.functions.durations, ProcessCollector(),
                MachineCollector(spool: settings.spool.directory, state: settings.agent.stateDirectory, on: storeLoop),
            ] + control.collectors + [parts.ports.reopened, parts.restart]
        var page: (@Sendable () -> String)?
        if settings.stats.statusPage {
            page = { StatusPage(status.report(), history: parts.recorder.history).html }
        }
        let server = StatsServer(
            on: loop, host: listen.host, port: listen.port, names: settings.stats.hosts, collectors: collectors,
            obstacles: { await status.status().obstacles }, page: page)
        _ = try await relaying(awaiting: try await server.start()) { (error: ControlError) in
            AgentError(.inUse, error.message)
        }
        return server
    }
}
