import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemCode } from '@vmwright/core';
import { Assets } from '../assets/assets.ts';
import { TestbedError } from '../errors.ts';
import { Keeper } from '../process/keeper.ts';
import { type Result, run, tryRun } from '../process/run.ts';
import { Api, ApiError, type KubeObject } from './api.ts';
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
    const found = await this.#watchUntil(options, async (signal) => {
      for await (const { type, object } of this.api.watch(watchPath(path), signal)) {
        last = object;
        if (type !== 'DELETED' && is(object)) return object;
      }
      return undefined;
    });
    if (found !== undefined) return found;
    const seen = JSON.stringify({ ...last, data: undefined }); // a Secret's data stays where it is
    throw new TestbedError('PART_NOT_READY', `${path}: not as wanted in time; last seen: ${seen}`);
  }

  /** Waits until there is no such object. */
  async waitForGone(path: string, options: WaitOptions = {}): Promise<void> {
    const gone = await this.#watchUntil(options, async (signal) => {
      const object = await this.api.get(path).catch((error) => {
        if (!(error instanceof ApiError && error.status === 404)) throw error;
      });
      if (object === undefined) return true;
      const from = `${watchPath(path)}&resourceVersion=${object.metadata.resourceVersion}`;
      for await (const { type } of this.api.watch(from, signal)) if (type === 'DELETED') return true;
      return undefined;
    });
    if (gone === undefined)
      throw new TestbedError('PART_NOT_READY', `${path}: still there, though waited for`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.api[Symbol.asyncDispose]();
  }

  /** Watches again when a watch ends: the server is being restarted, or a new CRD is not served yet. */
  async #watchUntil<T>(
    { timeoutMs = 60_000 }: WaitOptions,
    attempt: (signal: AbortSignal) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const signal = AbortSignal.timeout(timeoutMs);
    while (!signal.aborted) {
      try {
        const found = await attempt(signal);
        if (found !== undefined) return found;
      } catch (error) {
        if (!signal.aborted && isFinal(error)) throw error;
      }
      await sleep(200, undefined, { signal }).catch(() => undefined);
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

/** A watch on one object goes by its name within its collection. */
function watchPath(path: string): string {
  const cut = path.lastIndexOf('/');
  return `${path.slice(0, cut)}?fieldSelector=metadata.name%3D${path.slice(cut + 1)}`;
}

/** Whether waiting changes nothing: the server refuses, or it is no answer of the server's at all but a test's mistake. */
function isFinal(error: unknown): boolean {
  if (error instanceof ApiError) return [400, 401, 403].includes(error.status);
  return !/^(UND_ERR_|ECONN|EPIPE)/.test(systemCode(error) ?? '');
}
