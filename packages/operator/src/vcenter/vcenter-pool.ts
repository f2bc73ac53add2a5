import { ReportedError } from './errors.ts';
import type { VCenter } from './vcenter.ts';

/** Namespace of an object, and the vCenter that its status or spec names. */
export interface VCenterRequest {
  readonly namespace: string;
  /**
   * Name of the vCenter.
   * @default the vCenter that is assigned to the namespace, otherwise the vCenter for all namespaces
   */
  readonly name?: string | undefined;
}

/** All vCenters that the operator is configured with. */
export class VCenterPool implements AsyncDisposable {
  readonly #vcenters: readonly VCenter[];

  constructor(vcenters: readonly VCenter[]) {
    this.#vcenters = vcenters;
  }

  [Symbol.iterator](): Iterator<VCenter> {
    return this.#vcenters[Symbol.iterator]();
  }

  /** Returns the vCenter for a request; undefined if it does not exist or does not admit the namespace. */
  find({ namespace, name }: VCenterRequest): VCenter | undefined {
    const admitting = this.#admitting(namespace);
    if (name !== undefined) return admitting.find((vcenter) => vcenter.name === name);
    return (
      admitting.find(({ namespaces }) => namespaces !== undefined) ??
      admitting.find(({ namespaces }) => namespaces === undefined)
    );
  }

  /** Returns the vCenter for a request. @throws ReportedError if it does not exist or does not admit the namespace */
  get(request: VCenterRequest): VCenter {
    const vcenter = this.find(request);
    if (vcenter !== undefined) return vcenter;
    const { name, namespace } = request;
    const names = this.#admitting(namespace).map((each) => each.name);
    const available = names.length === 0 ? '' : ` (available: ${names.join(', ')})`;
    // The message is the same for a vCenter that does not exist and for a vCenter that does not admit the namespace.
    // So users cannot find out the names of vCenters that their namespace may not use.
    const message =
      name === undefined
        ? `no vCenter is available to the namespace '${namespace}'; ask the administrator of the operator for one`
        : `no vCenter '${name}' is available to the namespace '${namespace}'${available}; create the group again with another spec.placement.vcenter, or add this vCenter to the operator's configuration`;
    throw new ReportedError({ reason: 'UnknownVcenter', message });
  }

  #admitting(namespace: string): readonly VCenter[] {
    return this.#vcenters.filter((vcenter) => vcenter.admits(namespace));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#vcenters.map((vcenter) => vcenter[Symbol.asyncDispose]()));
  }
}
