internal import Configuration
internal import Control
internal import EventLoops
internal import Glibc
internal import Metrics
internal import Model

/// Opens the ports at which the agent is asked: the control socket and the figures.
extension AgentService {
    func startControl(_ routes: ControlRoutes) async throws(AgentError) -> ControlServer {
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

    func startStats(
        _ status: AgentStatus, _ collectors: [any MetricCollector]
    ) async throws(AgentError) -> StatsServer? {
        guard task == nil, let listen = settings.stats.listen else { return nil }
        var page: (@Sendable () -> String)?
        if settings.stats.statusPage {
            page = { StatusPage(status.report(), history: status.recorder.history).html }
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
