internal import Configuration
internal import Containers
internal import Control
internal import EventLoops
internal import Model
internal import Outputs
internal import Logs

extension ContainerKeeper {
    func fetcher(of settings: ContainerSettings) -> DocumentFetcher? {
        guard let url = settings.url else { return nil }
        do throws(OutputError) {
            return try DocumentFetcher(
                url.text, caFile: settings.caFile, largest: SignedDocument.largest, userAgent: userAgent, on: loop,
                time: time)
        } catch {
            log.error("container cannot be fetched", ["container": settings.id, "hint": error.message])
            return nil
        }
    }

    func fetch(_ slot: ContainerSlot, _ etag: String?) {
        Task(executorPreference: loop) {
            let fetched = await self.fetched(slot, etag)
            await self.feed(slot, .fetched(fetched))
        }
    }

    private func fetched(_ slot: ContainerSlot, _ etag: String?) async -> ContainerMachine.Fetched {
        guard isNetworkOn() else { return .failed(.noNetwork, "the network is switched off (`spoolship network on`)") }
        guard !offline.contains(slot.settings.id) else { return .failed(.noNetwork, "there is no route to it") }
        guard let fetcher = slot.fetcher else { return .failed(.unknownError, "its url or ca_file cannot be used") }
        let result = await fetcher.fetch(etag: etag)
        switch result {
        case .notModified: return .notModified
        case .status(let status, let wait):
            return .failed(
                .serverError, "the server answered \(status)\(ContainerKeeper.hint(status))", retryAfter: wait)
        case .tooLarge:
            return .refused(ContainerError(.limit, "it is larger than \(SignedDocument.largest) bytes"))
        case .failed(let failure):
            return .failed(failure.kind == .local ? .unknownError : .networkError, failure.message)
        case .document(let file, let etag):
            do throws(ContainerError) {
                let signed = try SignedDocument(file)
                try signed.verify(by: slot.keys)
                let copy = try slot.take(signed.document)
                slot.fetched = (copy, file)
                return .copy(copy, etag: etag)
            } catch {
                return .refused(ContainerError(error.code, error.description))
            }
        }
    }

    /// Fetches what a person's link leads to, as the container's own documents are fetched, but within a few seconds.
    func fetched(_ link: String, for slot: ContainerSlot) async throws(ControlRefusal) -> [UInt8] {
        guard isNetworkOn() else { throw .notFetched("the network is switched off (`spoolship network on`)") }
        let fetcher = try relaying(
            try DocumentFetcher(
                link, caFile: slot.settings.caFile, largest: SignedDocument.largest, userAgent: userAgent,
                connectTimeout: .seconds(4), timeout: .seconds(8), on: loop)
        ) { (error: OutputError) in ControlRefusal.notFetched(error.message) }
        switch await fetcher.fetch(etag: nil) {
        case .document(let file, _): return file
        case .notModified: throw .notFetched("the server answered 304")
        case .status(let status, _): throw .notFetched("the server answered \(status)\(ContainerKeeper.hint(status))")
        case .tooLarge: throw .notFetched("it is larger than \(SignedDocument.largest) bytes")
        case .failed(let failure): throw .notFetched(failure.message)
        }
    }

    private static func hint(_ status: Int) -> String {
        switch status {
        case 300..<400: "; redirects are not followed, so set url to the final address"
        case 404, 410: "; is it published there?"
        default: ""
        }
    }

    /// A person has switched the network on: what is missing or stale is fetched at once.
    func networkIsOn() {
        for slot in slots { feed(slot, .networkChanged) }
    }

    /// Routes were looked at again: whether one leads to each container, by its id, and whether the default one changed.
    func networkNews(_ routes: [String: Bool], hasChanged: Bool) {
        let before = offline
        offline = Set(routes.filter { !$0.value }.map(\.key))
        for slot in slots where hasChanged || before.contains(slot.settings.id) && !offline.contains(slot.settings.id) {
            feed(slot, .networkChanged)
        }
    }
}
