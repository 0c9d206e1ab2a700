# Mediated devices: of the driver in module/, which the host builds for this kernel.

MDEV=/sys/bus/mdev/devices
SMALL_RESOURCE=nvidia.com/GRID_T4-1Q
SMALL_VARIABLE=MDEV_PCI_RESOURCE_NVIDIA_COM_GRID_T4-1Q
BY_HAND=11111111-2222-3333-4444-555555555555
# What the agent's uuids of the two parents begin with.
OWN0=00000000-0f00-8f10
OWN1=00000000-1000-8f10

load_parents() {
  later rmmod mdev
  later rmmod vm_mdev
  { modprobe -a vfio_iommu_type1 mdev && insmod /guest/vm_mdev.ko; } ||
    fail "the parents' driver cannot be loaded"
  expect_driver "$PARENT0" nvidia
  expect_driver "$PARENT1" nvidia
}

# select_mdevs TYPES [LINE...]: both parents are cut into these.
select_mdevs() {
  {
    echo "mode: vm-vgpu"
    echo "mdev:"
    echo "  - parent: [{device: \"1eb8\", vendor: \"10de\"}]"
    echo "    types: $1"
    shift
    for line; do echo "    $line"; done
  } | write_config
}

# make_by_hand PARENT TYPE UUID: what an operator types.
make_by_hand() { echo "$3" >"$PCI/devices/$1/mdev_supported_types/$2/create"; }

# room PARENT TYPE: sets `room`.
room() { read -r room <"$PCI/devices/$1/mdev_supported_types/$2/available_instances"; }

# The uuids of all instances, in `instances`.
find_instances() {
  instances=
  for path in "$MDEV"/*; do
    [ -e "$path" ] && instances="$instances ${path##*/}"
  done
  return 0
}

# expect_instances COUNT [PREFIX]: so many, whose uuids begin so.
expect_instances() {
  find_instances
  count=0
  for uuid in $instances; do
    case $uuid in "$2"*) count=$((count + 1)) ;; esac
  done
  [ "$count" = "$1" ] || fail "$count instances of $2 instead of $1:$instances"
}

first_of() {
  find_instances
  for uuid in $instances; do
    case $uuid in "$1"*) return ;; esac
  done
  fail "no instance of $1:$instances"
}

expect_parents() {
  for parent in "$PARENT0" "$PARENT1"; do
    expect_driver "$parent" nvidia
    expect_no_override "$parent"
  done
}

# True where there is that driver; else says why not.
have_parents() {
  [ -e /guest/vm_mdev.ko ] && return
  note "mediated devices are not tried: $(cat /guest/no-module)"
  return 1
}
