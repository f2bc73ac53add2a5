import { Assets, run } from '@vmwright/testbed';
import { parseAllDocuments } from 'yaml';
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

/** Returns the objects of a folder in `config/`. */
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
