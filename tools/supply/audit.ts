/** A vulnerable package, from the report of `npm audit --json`. */
export interface Vulnerability {
  readonly name: string;
  readonly severity: string;
  /** Range of vulnerable versions. */
  readonly range: string;
  readonly advisories: readonly string[];
}

const SEVERITIES = ['info', 'low', 'moderate', 'high', 'critical'];

/**
 * Returns the vulnerabilities of at least this severity in the report of `npm audit --json`.
 * @throws Error if the report contains an error instead, for example because the registry does not serve advisories
 */
export function vulnerabilitiesIn(report: string, atLeast: 'high' | 'critical'): readonly Vulnerability[] {
  const { vulnerabilities, message, error } = parsed(report);
  if (vulnerabilities === undefined) throw new Error(error?.summary || message || 'npm printed no report');
  const levels = SEVERITIES.slice(SEVERITIES.indexOf(atLeast));
  return Object.values(vulnerabilities)
    .filter(({ severity }) => levels.includes(severity))
    .map(({ name, severity, range, via }) => ({
      name,
      severity,
      range,
      // A string in `via` is the name of another vulnerable package, which has its own entry in the report.
      advisories: via.flatMap((each) => (typeof each === 'string' ? [] : [`${each.title}: ${each.url}`])),
    }));
}

/** The fields of a report that are used. A report about a failure has `error` or `message`. */
interface Report {
  readonly vulnerabilities?: Readonly<Record<string, ReportedVulnerability>>;
  readonly message?: string;
  readonly error?: { readonly summary?: string };
}

interface ReportedVulnerability {
  readonly name: string;
  readonly severity: string;
  readonly range: string;
  readonly via: readonly (string | { readonly title: string; readonly url: string })[];
}

function parsed(report: string): Report {
  try {
    return JSON.parse(report);
  } catch {
    return {};
  }
}
