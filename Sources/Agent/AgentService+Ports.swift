internal import Configuration
internal import Control
internal import EventLoops
internal import Glibc
internal import Intake
internal import Metrics
internal import Model
internal import Queue
internal import Synchronization

/// The ports at which the agent answers: the control socket, and the stats port with metrics and the status
/// page.
extension AgentService {
    /// Opens both ports, or neither. The control socket is first: commands need it even without a stats port.
    func openPorts(
        _ parts: Parts, _ restored: RestoredState, _ rules: IntakeRules, _ tap: EventTap
    ) async throws(AgentError) {
        let queue = parts.queue
        let status = AgentStatus(agent: self, parts: parts)
        let rereader = Rereader(
            on: readerLoop, store: queue, memory: restored.memory, rules: rules, time: time,
            clock: clockTrust(queue), log: log,
            ofPlaces: { await self.settingsOfReading.forPlaces($0) }
        ) { await self.intakeSettings(cap: queue.snapshot.maxSize) }
        // Each group of routes gets only the parts that it needs.
        var routes = ControlRoutes()
        routes.addStatus { await status.status() }
        routes.addSwitches(of: self)
        routes.addSending(parts.driver, parts.queue, parts.containers)
        routes.addRecords(
            AgentRecords(
                queue: queue, rereader: rereader, spool: parts.reader.spool,
                maxEventSize: settings.spool.maxEventSize,
                time: time, deadlines: { await self.deadlines }, driver: parts.driver,
                forget: { await self.forget($0, in: parts) },
                places: settings.erasurePlaces,
                log: log))
        routes.addTap(tap)
        routes.addBackfill(parts.backfill)
        routes.addContainers(parts.containers)
        let control = try await startControl(routes)
        ports.control = control
        // An agent with a task has no stats port, and ends before anything would have to be watched.
        guard task == nil else { return await parts.ports.watch([]) }
        do throws(AgentError) {
            ports.stats = try await startStats(status, control)
        } catch {
            await control.stop()
            throw error
        }
        await parts.restart.start()
        await parts.ports.watch([control] + (ports.stats.map { [$0] } ?? []))
    }

    /// Opens the control socket, whose permissions decide who may command the agent.
    private func startControl(_ routes: ControlRoutes) async throws(AgentError) -> ControlServer {
        // The default group exists where the package was installed. Elsewhere the socket belongs to the
        // agent's own group.
        let isDefault = settings.origin(of: "control.group") == .standard
        let group = isDefault && getgrnam(settings.control.group) == nil ? nil : settings.control.group
        // The body of a request may be a piece of an old file with one event larger than usual requests.
        let largestBody = max(1 << 20, settings.spool.maxEventSize + 1)
        do throws(ControlError) {
            let server = try ControlServer(
                on: loop, socket: settings.control.socket, group: group, largestBody: largestBody,
                routes: routes)
            try await server.start()
            return server
        } catch {
            // The codes decide the exit status: a restart does not help against a wrong address or a missing
            // group.
            switch error.code {
            case .badAddress: throw AgentError(.configuration, error.message)
            case .notPermitted: throw AgentError(.noPermission, error.message)
            default: throw AgentError(.inUse, error.message)
            }
        }
    }

    /// Opens the stats port; nil if it is not configured.
    private func startStats(_ status: AgentStatus, _ control: ControlServer) async throws(AgentError)
        -> StatsServer?
    {
        guard let listen = settings.stats.listen else { return nil }
        let parts = status.parts
        // Collectors run in this order, and a later value of a series replaces an earlier one.
        let collectors: [any MetricCollector] =
            [
                AgentCollector(agent: self, parts: parts), parts.notice, parts.unread, sending,
                parts.functions.durations, ProcessCollector(),
                MachineCollector(
                    spool: settings.spool.directory, state: settings.agent.stateDirectory, on: storeLoop),
            ] + control.collectors + [parts.ports.reopened, parts.restart]
        var page: (@Sendable () -> String)?
        if settings.stats.statusPage {
            page = { StatusPage(status.report(), history: parts.recorder.history).html }
        }
        let server = StatsServer(
            on: loop, host: listen.host, port: listen.port, names: settings.stats.hosts,
            collectors: collectors,
            obstacles: { await status.status().obstacles }, page: page)
        _ = try await relaying(awaiting: try await server.start()) { (error: ControlError) in
            AgentError(.inUse, error.message)
        }
        return server
    }
}
