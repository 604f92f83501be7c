package import Containers
public import Control
internal import Intake

/// The board gives calls of tags to clients of the control API (`POST /v1/function-calls`).
extension CallBoard: AppAudience {
    package func offer(_ call: AppCall, of app: String) -> Bool {
        offer(
            function: call.call.function, parameters: call.call.parameters, container: call.container,
            app: app)
    }
}
