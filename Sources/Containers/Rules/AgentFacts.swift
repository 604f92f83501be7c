/// What macros know of the agent and its machine.
public struct AgentFacts: Sendable, Equatable {
    /// The machine's name; nil when it has none.
    public var hostName: String?
    /// The operating system's version, as `VERSION_ID` in os-release; nil when it says none.
    public var osVersion: String?
    package var agentVersion: String?
    /// The agent's own locale, as `it_IT.UTF-8`.
    public var locale: String?
    /// The lengths, in UTF-16 code units, to which the limits cut the names of properties.
    public var keyLengths: Set<Int> = []
    /// What `hash` tags of the container make digests with; nil where the configuration names no key.
    public var hashKey: HashKey?

    /// What is known.
    public init(
        hostName: String? = nil, osVersion: String? = nil, agentVersion: String? = nil, locale: String? = nil
    ) {
        self.hostName = hostName
        self.osVersion = osVersion
        self.agentVersion = agentVersion
        self.locale = locale
    }

    /// This machine's place in the rollouts of a container, from 0 to below 100: always the same one.
    public func share(of container: String) -> Double { Sampling.share(of: container, on: hostName ?? "") }

    /// The language of a locale by ISO 639-1: two small letters; `C` and `POSIX` are English; nil for anything else.
    static func language(of locale: String) -> String? {
        let word = locale.prefix { $0 != "_" && $0 != "-" && $0 != "." && $0 != "@" }
        if word == "C" || word == "POSIX" { return "en" }
        guard word.utf8.count == 2, word.utf8.allSatisfy({ (0x61...0x7A).contains($0 | 0x20) }) else { return nil }
        return word.lowercased()
    }
}
