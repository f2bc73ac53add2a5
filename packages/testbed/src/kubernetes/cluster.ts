import { join } from 'node:path';
import { Assets } from '../assets/assets.ts';
import { TestbedError } from '../errors.ts';
import { Keeper } from '../process/keeper.ts';
import { type Result, run, tryRun } from '../process/run.ts';
import { Api, ApiError, type KubeObject, type WatchEvent } from './api.ts';
import { type Access, readKubeconfig, writeKubeconfig } from './kubeconfig.ts';

export interface ServiceAccount {
  readonly namespace: string;
  readonly name: string;
}

/** A namespace of one's own on a cluster that others use too; deleted when disposed. */
export interface Namespace extends AsyncDisposable {
  readonly name: string;
}

/** A running cluster as its users see it, whoever started it. */
export class Cluster implements AsyncDisposable {
  /** The administrator's kubeconfig file. */
  readonly kubeconfig: string;
  readonly access: Access;
  /** Requests as administrator. */
  readonly api: Api;
  readonly #kubectl: string;

  private constructor(kubeconfig: string, access: Access, kubectl: string) {
    this.kubeconfig = kubeconfig;
    this.access = access;
    this.api = new Api(access);
    this.#kubectl = kubectl;
  }

  static async connect(kubeconfig: string): Promise<Cluster> {
    return new Cluster(kubeconfig, await readKubeconfig(kubeconfig), await new Assets().path('kubectl'));
  }

  /** Runs kubectl as administrator, or as whom `kubeconfig` says; a failure throws what kubectl said. */
  kubectl(args: readonly string[], options: KubectlOptions = {}): Promise<Result> {
    return run(this.#kubectl, args, this.#runOptions(options));
  }

  /** Like `kubectl`, where a refusal is the answer that the test is after. */
  tryKubectl(args: readonly string[], options: KubectlOptions = {}): Promise<Result> {
    return tryRun(this.#kubectl, args, this.#runOptions(options));
  }

  /** Applies manifests: text, or the files at these paths. */
  async apply(manifests: string | readonly string[]): Promise<void> {
    const apply = ['apply', '--server-side', '--force-conflicts', '--field-manager=vmwright-testbed'];
    if (typeof manifests === 'string') await this.kubectl([...apply, '-f', '-'], { input: manifests });
    else await this.kubectl([...apply, ...manifests.flatMap((path) => ['-f', path])]);
  }

  /** A kubeconfig for running something as this service account, under the RBAC that it ships. */
  async kubeconfigFor({ namespace, name }: ServiceAccount): Promise<string> {
    const token = await this.api.token(namespace, name);
    const path = join(await Keeper.shared.folder('kubeconfig'), `${namespace}-${name}`);
    return writeKubeconfig(path, { ...this.access, as: { token } });
  }

  /** A new namespace, ready for pods (its default service account is there). */
  async namespace(prefix = 'test'): Promise<Namespace> {
    const { metadata } = await this.api.create('/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { generateName: `${prefix}-` },
    });
    const path = `/api/v1/namespaces/${metadata.name}`;
    await this.waitFor(`${path}/serviceaccounts/default`, () => true);
    return {
      name: metadata.name,
      // Not waited for: emptying it is the controller-manager's work, and nobody else uses the name.
      [Symbol.asyncDispose]: () => this.api.delete(path),
    };
  }

  /** Waits, by a watch on this one object, until it is as `is` wants it, and gives it. */
  async waitFor(
    path: string,
    is: (object: KubeObject) => boolean,
    options: WaitOptions = {},
  ): Promise<KubeObject> {
    let last: KubeObject | undefined;
    const found = await this.#watchUntil(path, '', options, ({ type, object }) => {
      last = object;
      return type !== 'DELETED' && is(object);
    });
    if (found !== undefined) return found;
    throw new TestbedError(
      'PART_NOT_READY',
      `${path}: not as wanted in time; last seen: ${JSON.stringify(last)}`,
    );
  }

  /** Waits until there is no such object. */
  async waitForGone(path: string, options: WaitOptions = {}): Promise<void> {
    try {
      const { metadata } = await this.api.get(path);
      const from = `&resourceVersion=${metadata.resourceVersion}`;
      if ((await this.#watchUntil(path, from, options, ({ type }) => type === 'DELETED')) !== undefined)
        return;
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return;
      throw error;
    }
    throw new TestbedError('PART_NOT_READY', `${path}: still there, though its deletion was waited for`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.api[Symbol.asyncDispose]();
  }

  async #watchUntil(
    path: string,
    query: string,
    { timeoutMs = 60_000 }: WaitOptions,
    wanted: (event: WatchEvent) => boolean,
  ): Promise<KubeObject | undefined> {
    const cut = path.lastIndexOf('/');
    const collection = `${path.slice(0, cut)}?fieldSelector=metadata.name%3D${path.slice(cut + 1)}${query}`;
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      for await (const event of this.api.watch(collection, signal)) if (wanted(event)) return event.object;
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return undefined;
  }

  #runOptions({ input, kubeconfig = this.kubeconfig }: KubectlOptions) {
    return { env: { ...process.env, KUBECONFIG: kubeconfig }, ...(input !== undefined && { input }) };
  }
}

export interface KubectlOptions {
  readonly input?: string;
  readonly kubeconfig?: string;
}

export interface WaitOptions {
  /** @default 60_000 */
  readonly timeoutMs?: number;
}
