import { Assets, field, run } from '@vmwright/testbed';
import { parse, parseAllDocuments } from 'yaml';
import { parseFlags } from '../src/settings/flags.ts';
import { type Settings, settingsOf } from '../src/settings/settings.ts';
import { ROOT } from './doc-commands.ts';

/** A manifest that kustomize or Helm has rendered. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}

export const CHART = `${ROOT}charts/vmwright`;

/** Returns the objects that kustomize renders from a folder in `config/`. */
export async function kustomized(folder: string): Promise<readonly Manifest[]> {
  const { stdout } = await run(await new Assets().path('kubectl'), ['kustomize', `${ROOT}config/${folder}`]);
  return manifestsIn(stdout);
}

/** Returns the objects of the chart. @param args flags of Helm, such as `--set` */
export async function helmTemplate(...args: readonly string[]): Promise<readonly Manifest[]> {
  return manifestsIn(await helm('template', 'vmwright', CHART, '--namespace=vmwright-system', ...args));
}

/** Runs Helm and returns its output. */
export async function helm(...args: readonly string[]): Promise<string> {
  return (await run(await new Assets().path('helm'), args)).stdout;
}

function manifestsIn(yaml: string): readonly Manifest[] {
  return parseAllDocuments(yaml).flatMap((document): readonly Manifest[] => document.toJS() ?? []);
}

/** Identifies an object: `Deployment vmwright-system/vmwright`. */
export function nameOf({ kind, metadata: { namespace = '', name } }: Manifest): string {
  return `${kind} ${namespace}/${name}`;
}

/** Returns the container of the operator. */
export function operatorContainer(manifests: readonly Manifest[]): unknown {
  const deployment = manifests.find((each) => nameOf(each) === 'Deployment vmwright-system/vmwright');
  return field(deployment, 'spec', 'template', 'spec', 'containers', '0');
}

/**
 * Returns the settings that the operator reads from the arguments, environment variables and ConfigMap in manifests.
 * @throws SettingsError
 */
export function operatorSettings(manifests: readonly Manifest[]): Settings {
  const container = operatorContainer(manifests);
  const list = (name: string): readonly unknown[] => {
    const value = field(container, name);
    return Array.isArray(value) ? value : [];
  };
  const [, ...args] = list('args').map(String);
  const environment = Object.fromEntries(
    // The only variable without a value is the namespace of the pod.
    list('env').map((each) => [
      String(field(each, 'name')),
      String(field(each, 'value') ?? 'vmwright-system'),
    ]),
  );
  const map = manifests.find((each) => nameOf(each) === 'ConfigMap vmwright-system/vmwright-config');
  const values = parse(String(field(map, 'data', 'config.yaml'))) ?? {};
  return settingsOf(parseFlags(args), environment, { path: 'config.yaml', values });
}
