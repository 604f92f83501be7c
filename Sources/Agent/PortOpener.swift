internal import Configuration
internal import Control
internal import EventLoops
internal import Glibc
internal import Intake
internal import Metrics
internal import Model
internal import Queue
internal import Synchronization

/// Opens the ports at which the agent answers: the control socket, and the stats port with metrics and the
/// status page.
struct PortOpener {
    let agent: AgentService
    /// The settings in force at the start. Ports do not change at a reload.
    let settings: Settings
    let parts: AgentService.Parts

    /// Opens both ports, or neither. The control socket is first: commands need it even without a stats port.
    func open(
        _ tap: EventTap, _ board: CallBoard, _ rereader: Rereader
    ) async throws(AgentError) -> AgentService.OpenPorts {
        let status = AgentStatus(agent: agent, parts: parts)
        // Each group of routes gets only the parts that it needs.
        var routes = ControlRoutes()
        routes.addStatus { await status.status() }
        routes.addSwitches(of: agent)
        routes.addSending(parts.driver, parts.queue, parts.containers)
        routes.addRecords(
            AgentRecords(
                queue: parts.queue, rereader: rereader, spool: parts.reader.spool,
                maxEventSize: settings.spool.maxEventSize,
                time: agent.time, deadlines: { [agent] in await agent.deadlines }, driver: parts.driver,
                forget: { [agent, parts] in await agent.forget($0, in: parts) },
                places: settings.erasurePlaces, spoolDirectory: settings.spool.directory,
                log: agent.log))
        routes.addTap(tap)
        routes.addBackfill(parts.backfill)
        routes.addContainers(parts.containers, board)
        let control = try await startControl(routes)
        // An agent with a task has no stats port, and ends before anything would have to be watched.
        guard agent.task == nil else {
            await parts.ports.watch([])
            return AgentService.OpenPorts(control: control)
        }
        let stats: StatsServer?
        do throws(AgentError) {
            stats = try await startStats(status, control)
        } catch {
            await control.stop()
            throw error
        }
        await parts.restart.start()
        await parts.ports.watch([control] + (stats.map { [$0] } ?? []))
        return AgentService.OpenPorts(control: control, stats: stats)
    }

    /// Opens the control socket, whose permissions decide who may command the agent.
    private func startControl(_ routes: ControlRoutes) async throws(AgentError) -> ControlServer {
        // The default group exists where the package was installed. Elsewhere the socket belongs to the
        // agent's own group.
        let isDefault = settings.origin(of: "control.socket.group") == .standard
        let group = isDefault && getgrnam(settings.control.group) == nil ? nil : settings.control.group
        // The body of a request may be a piece of an old file with one event larger than usual requests.
        let largestBody = max(1 << 20, settings.spool.maxEventSize + 1)
        do throws(ControlError) {
            let server = try ControlServer(
                on: agent.loop, socket: settings.control.socket, group: group, largestBody: largestBody,
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
        // Collectors run in this order, and a later value of a series replaces an earlier one.
        let collectors: [any MetricCollector] =
            [
                AgentCollector(agent: agent, parts: parts), parts.notice, parts.unread, agent.sending,
                parts.functions.durations, ProcessCollector(),
                MachineCollector(
                    spool: settings.spool.directory, state: settings.agent.stateDirectory, on: agent.storeLoop
                ),
            ] + control.collectors + [parts.ports.reopened, parts.restart]
        var page: (@Sendable () -> String)?
        if settings.stats.statusPage {
            page = { [parts] in StatusPage(status.report(), history: parts.recorder.history).html }
        }
        let server = StatsServer(
            on: agent.loop, host: listen.host, port: listen.port, names: settings.stats.hosts,
            collectors: collectors,
            readiness: { await status.status().readiness }, page: page)
        _ = try await relaying(awaiting: try await server.start()) { (error: ControlError) in
            AgentError(.inUse, error.message)
        }
        return server
    }
}
