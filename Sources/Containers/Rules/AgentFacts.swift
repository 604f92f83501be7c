/// What macros know about the agent and its machine.
public struct AgentFacts: Sendable, Equatable {
    /// Host name; nil if the machine has none.
    public var hostName: String?
    /// Version of the operating system, `VERSION_ID` of os-release(5); nil if it is not set.
    public var osVersion: String?
    /// Version of the agent.
    package var agentVersion: String?
    /// The agent's locale, as `it_IT.UTF-8`.
    public var locale: String?
    /// Lengths, in UTF-16 code units, to which the limits cut names of properties. A path must also hide what
    /// such a cut leaves.
    public var keyLengths: Set<Int> = []
    /// Key for the digests of `hash` tags; nil if the configuration names no key.
    public var hashKey: HashKey?

    /// The facts.
    public init(
        hostName: String? = nil, osVersion: String? = nil, agentVersion: String? = nil, locale: String? = nil
    ) {
        self.hostName = hostName
        self.osVersion = osVersion
        self.agentVersion = agentVersion
        self.locale = locale
    }

    /// This machine's share in the rollouts of a container, from 0 to below 100; always the same.
    public func share(of container: String) -> Double { Sampling.share(of: container, on: hostName ?? "") }

    /// Language of a locale by ISO 639-1: two small letters. `C` and `POSIX` are English; nil for other
    /// texts.
    static func language(of locale: String) -> String? {
        let word = locale.prefix { $0 != "_" && $0 != "-" && $0 != "." && $0 != "@" }
        if word == "C" || word == "POSIX" { return "en" }
        guard word.utf8.count == 2, word.utf8.allSatisfy({ (0x61...0x7A).contains($0 | 0x20) }) else {
            return nil
        }
        return word.lowercased()
    }
}
