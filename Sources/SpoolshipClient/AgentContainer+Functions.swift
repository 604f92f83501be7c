/// Gives the value of a macro: nil, or null, leaves it to the macro's default.
///
/// - Parameters:
///   - name: name of the function.
///   - parameters: its parameters, a map.
public typealias FunctionCallMacroHandler =
    @Sendable (_ name: String, _ parameters: DataLayerValue) -> DataLayerValue?

/// Does what a tag asks for.
///
/// - Parameters:
///   - name: name of the function.
///   - parameters: its parameters, a map.
public typealias FunctionCallTagHandler = @Sendable (_ name: String, _ parameters: DataLayerValue) -> Void

extension AgentContainer {
    /// Registers the function of `function_call` macros with `"by": "app"`; nil ends that. The handler is
    /// called by the getters of this container, on their thread, whenever a value needs it: once for equal
    /// parameters in a call of a getter. Getters of other apps, and events, do not call it.
    public func registerFunctionCallMacroHandler(_ handler: FunctionCallMacroHandler?, forMacro name: String)
    {
        functions.setMacro(handler, name)
    }

    /// Registers the function of `function` tags with `"by": "app"`; nil ends that.
    ///
    /// The handler is called once an event or a push of this app is in the agent's queue and the tag fires,
    /// on a thread of the library, one call at a time, each at most once. Calls while this process does not
    /// listen, or reads too slowly, are lost, and the agent counts them. Of several processes of the app one
    /// gets each call. A handler may track and push.
    ///
    /// - Throws: `invalidSetting` if the container was made without an app.
    public func registerFunctionCallTagHandler(_ handler: FunctionCallTagHandler?, forTag name: String)
        throws(AnalyticsError)
    {
        guard let app else {
            throw AnalyticsError(.invalidSetting, "name the app: AgentContainer(id:, app:)")
        }
        functions.setTag(handler, name)
        functions.listen(for: app, to: id, at: socket)
    }

    /// Whether the agent gives this process calls of tags now.
    public var isListening: Bool { functions.isListening }

    /// Ends the calls of tags and macros, also for copies of this container. A call that has begun may still
    /// end after it. Calls that the agent gives before it sees the connection end, about a second later, are
    /// lost without being counted.
    public func close() { functions.removeAll() }
}

/// The functions of an app for one container, and the thread that waits for calls of tags.
final class ContainerFunctions: @unchecked Sendable {
    // Unchecked: what changes is only used with the monitor held.
    /// Guards all fields below.
    private let monitor = Monitor()
    /// Functions of macros, by name.
    private var macros: [String: FunctionCallMacroHandler] = [:]
    /// Functions of tags, by name.
    private var tags: [String: FunctionCallTagHandler] = [:]
    /// Counts changes of the names in `tags`: a connection for other names is made anew.
    private var changes = 0
    /// Whether the thread runs.
    private var hasThread = false
    /// The number of changes for which the agent has confirmed the connection; nil without one.
    private var confirmed: Int?

    /// Most bytes of a call. The agent gives at most 64 KiB.
    private static let largestCall = 256 << 10

    /// Whether calls of tags arrive.
    var isListening: Bool { monitor.sync { confirmed == changes } }
    /// Names of the functions of macros.
    var macroNames: [String] { monitor.sync { Array(macros.keys) } }

    /// The function of macros with a name.
    func macro(_ name: String) -> FunctionCallMacroHandler? { monitor.sync { macros[name] } }

    /// Sets or removes the function of macros with a name.
    func setMacro(_ handler: FunctionCallMacroHandler?, _ name: String) {
        monitor.sync { macros[name] = handler }
    }

    /// Sets or removes the function of tags with a name.
    func setTag(_ handler: FunctionCallTagHandler?, _ name: String) {
        monitor.sync {
            if (tags[name] == nil) != (handler == nil) {
                changes += 1
            }
            tags[name] = handler
        }
    }

    /// Removes all functions; the thread ends within a second.
    func removeAll() {
        monitor.sync {
            macros = [:]
            tags = [:]
            changes += 1
            confirmed = nil
        }
    }

    /// Starts the thread unless it runs.
    func listen(for app: String, to container: String, at socket: AgentSocket) {
        let mustStart = monitor.sync {
            // Without functions no thread starts, so none may be noted as running.
            guard !hasThread, !tags.isEmpty else { return false }
            hasThread = true
            return true
        }
        guard mustStart, !startThread({ [weak self] in Self.run(app, container, socket) { self } }) else {
            return
        }
        monitor.sync { hasThread = false }
    }

    /// The thread: connects, and reads calls, until there are no functions of tags or the object is gone.
    private static func run(
        _ app: String, _ container: String, _ socket: AgentSocket, _ functions: () -> ContainerFunctions?
    ) {
        while let (names, change) = functions()?.wanted() {
            let list = names.map(EventLine.quoted).joined(separator: ",")
            let body =
                "{\"app\":\(EventLine.quoted(app)),\"container\":\(EventLine.quoted(container)),"
                + "\"functions\":[\(list)]}"
            // Any end of the connection: the agent restarts, or does not run. The next attempt says more.
            try? socket.stream(
                "POST", "/v1/function-calls", body: body, largestLine: largestCall,
                whileTrue: { functions()?.isCurrent(change) == true }
            ) { functions()?.take($0, change) }
            guard functions()?.disconnected(change) == true else { continue }
            sleepSecond()
        }
    }

    /// The names to listen for, and the number of their last change. Nil without names: the
    /// thread must then end.
    private func wanted() -> (names: [String], change: Int)? {
        monitor.sync {
            guard !tags.isEmpty else {
                hasThread = false
                return nil
            }
            return (tags.keys.sorted(), changes)
        }
    }

    /// Whether the names are those of a connection.
    private func isCurrent(_ change: Int) -> Bool { monitor.sync { changes == change } }

    /// Notes the end of a connection; returns whether the agent ended it, so that the next must wait.
    private func disconnected(_ change: Int) -> Bool {
        monitor.sync {
            confirmed = nil
            return changes == change
        }
    }

    /// Takes a line of the agent: the confirmation, or a call.
    private func take(_ line: String, _ change: Int) {
        guard case .object(let members)? = JSONText.read(line) else { return }
        if members["listening"] == .bool(true) {
            monitor.sync { confirmed = change }
            return
        }
        guard case .string(let name)? = members["function"], let tag = monitor.sync({ tags[name] }) else {
            return
        }
        tag(name, DataLayerValue(members["parameters"] ?? .object([:])))
    }
}
