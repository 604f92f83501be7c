package import Model

/// The settings of one type or format, for tests that make destinations. Reading those of another type gives the
/// defaults; setting them makes the destination one of that type or format.
extension DestinationSettings {
    package var http: HTTPSettings {
        get { if case .http(let http) = reach { http } else { HTTPSettings() } }
        set { reach = .http(newValue) }
    }
    package var s3: S3Settings {
        get { if case .s3(let s3) = reach { s3 } else { S3Settings() } }
        set { reach = .s3(newValue) }
    }
    package var nats: NATSSettings {
        get { if case .nats(let nats) = reach { nats } else { NATSSettings() } }
        set { reach = .nats(newValue) }
    }
    package var kafka: KafkaSettings {
        get { if case .kafka(let kafka) = reach { kafka } else { KafkaSettings() } }
        set { reach = .kafka(newValue) }
    }
    package var syslog: SyslogSettings {
        get { if case .syslog(let syslog) = reach { syslog } else { SyslogSettings() } }
        set { reach = .syslog(newValue) }
    }
}
