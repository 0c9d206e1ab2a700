// SPDX-License-Identifier: GPL-2.0
// vm_mdev: a PCI driver whose devices can be cut into mediated ones, for the real-kernel test.
//
// Each of its devices has room for four instances of the type "1" or two of the type "2", and all
// instances of one device are of one type, as with NVIDIA's vGPUs. An instance is no device at all,
// but VFIO lets one open and keep it: its config space can be read, and it has the interrupt by
// which the kernel asks for it back.
// Source: include/linux/{mdev,vfio,pci}.h and include/uapi/linux/vfio.h of Linux 6.1.

#include <linux/eventfd.h>
#include <linux/mdev.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vfio.h>

#define ROOM 4
#define TYPES 2

struct type {
  struct mdev_type mdev;
  unsigned int size;  // how much of a parent's room an instance takes
};

struct parent {
  struct mdev_parent mdev;
  struct type types[TYPES];
  struct mdev_type* list[TYPES];
  struct mutex lock;
  struct mdev_type* in_use;  // the type of all instances; valid while there are some
  unsigned int instances;
};

struct instance {
  struct vfio_device vfio;
  struct mutex lock;
  struct eventfd_ctx* request;  // who is told that the kernel wants it back; NULL for nobody
};

static struct parent* parent_of(struct mdev_type* type) {
  return container_of(type->parent, struct parent, mdev);
}

static unsigned int room_for(struct parent* parent, struct mdev_type* type) {
  unsigned int size = container_of(type, struct type, mdev)->size;

  lockdep_assert_held(&parent->lock);
  if (parent->instances > 0 && parent->in_use != type) return 0;
  return ROOM / size - parent->instances;
}

static unsigned int get_available(struct mdev_type* type) {
  struct parent* parent = parent_of(type);
  unsigned int room;

  mutex_lock(&parent->lock);
  room = room_for(parent, type);
  mutex_unlock(&parent->lock);
  return room;
}

static int take_room(struct mdev_type* type) {
  struct parent* parent = parent_of(type);
  int ret = -ENOSPC;

  mutex_lock(&parent->lock);
  if (room_for(parent, type) > 0) {
    parent->in_use = type;
    parent->instances++;
    ret = 0;
  }
  mutex_unlock(&parent->lock);
  return ret;
}

static void give_room_back(struct mdev_type* type) {
  struct parent* parent = parent_of(type);

  mutex_lock(&parent->lock);
  parent->instances--;
  mutex_unlock(&parent->lock);
}

static struct instance* instance_of(struct vfio_device* vfio) {
  return container_of(vfio, struct instance, vfio);
}

static int init_instance(struct vfio_device* vfio) {
  mutex_init(&instance_of(vfio)->lock);
  return 0;
}

static void release_instance(struct vfio_device* vfio) { vfio_free_device(vfio); }

static int open_instance(struct vfio_device* vfio) { return 0; }

static void set_request(struct instance* instance, struct eventfd_ctx* request) {
  mutex_lock(&instance->lock);
  swap(instance->request, request);
  mutex_unlock(&instance->lock);
  if (request) eventfd_ctx_put(request);
}

static void close_instance(struct vfio_device* vfio) { set_request(instance_of(vfio), NULL); }

static void request_instance(struct vfio_device* vfio, unsigned int count) {
  struct instance* instance = instance_of(vfio);

  mutex_lock(&instance->lock);
  if (instance->request) eventfd_signal(instance->request, 1);
  mutex_unlock(&instance->lock);
}

// The config space: ids, and zeros.
static ssize_t read_instance(struct vfio_device* vfio, char __user* to, size_t count, loff_t* at) {
  static const u8 config[64] = {0xde, 0x10, 0xb8, 0x1e};

  return simple_read_from_buffer(to, count, at, config, sizeof(config));
}

static long tell_device(void __user* at) {
  struct vfio_device_info info;
  size_t known = offsetofend(struct vfio_device_info, num_irqs);

  if (copy_from_user(&info, at, known)) return -EFAULT;
  if (info.argsz < known) return -EINVAL;
  info.flags = VFIO_DEVICE_FLAGS_PCI;
  info.num_regions = VFIO_PCI_NUM_REGIONS;
  info.num_irqs = VFIO_PCI_NUM_IRQS;
  return copy_to_user(at, &info, known) ? -EFAULT : 0;
}

static long tell_region(void __user* at) {
  struct vfio_region_info info;
  size_t known = offsetofend(struct vfio_region_info, offset);

  if (copy_from_user(&info, at, known)) return -EFAULT;
  if (info.argsz < known || info.index >= VFIO_PCI_NUM_REGIONS) return -EINVAL;
  info.flags = info.index == VFIO_PCI_CONFIG_REGION_INDEX ? VFIO_REGION_INFO_FLAG_READ : 0;
  info.size = info.flags ? 64 : 0;
  info.offset = 0;
  return copy_to_user(at, &info, known) ? -EFAULT : 0;
}

static long set_interrupt(struct instance* instance, void __user* at) {
  struct vfio_irq_set set;
  struct eventfd_ctx* request;
  size_t head = offsetofend(struct vfio_irq_set, count);
  int fd;

  if (copy_from_user(&set, at, head)) return -EFAULT;
  if (set.argsz < head + sizeof(fd) || set.index != VFIO_PCI_REQ_IRQ_INDEX || set.count != 1 ||
      set.flags != (VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER))
    return -EINVAL;
  if (copy_from_user(&fd, at + head, sizeof(fd))) return -EFAULT;
  request = eventfd_ctx_fdget(fd);
  if (IS_ERR(request)) return PTR_ERR(request);
  set_request(instance, request);
  return 0;
}

static long control_instance(struct vfio_device* vfio, unsigned int command, unsigned long at) {
  switch (command) {
    case VFIO_DEVICE_GET_INFO:
      return tell_device((void __user*)at);
    case VFIO_DEVICE_GET_REGION_INFO:
      return tell_region((void __user*)at);
    case VFIO_DEVICE_SET_IRQS:
      return set_interrupt(instance_of(vfio), (void __user*)at);
    default:
      return -ENOTTY;
  }
}

static const struct vfio_device_ops instance_ops = {
    .name = "vm_mdev",
    .init = init_instance,
    .release = release_instance,
    .open_device = open_instance,
    .close_device = close_instance,
    .read = read_instance,
    .ioctl = control_instance,
    .request = request_instance,
};

static int probe_instance(struct mdev_device* mdev) {
  struct instance* instance;
  int ret = take_room(mdev->type);

  if (ret) return ret;
  instance = vfio_alloc_device(instance, vfio, &mdev->dev, &instance_ops);
  if (IS_ERR(instance)) {
    ret = PTR_ERR(instance);
    goto no_instance;
  }
  ret = vfio_register_emulated_iommu_dev(&instance->vfio);
  if (ret) goto not_registered;
  dev_set_drvdata(&mdev->dev, instance);
  return 0;

not_registered:
  vfio_put_device(&instance->vfio);
no_instance:
  give_room_back(mdev->type);
  return ret;
}

// Waits for those who have it open.
static void remove_instance(struct mdev_device* mdev) {
  struct instance* instance = dev_get_drvdata(&mdev->dev);

  vfio_unregister_group_dev(&instance->vfio);
  vfio_put_device(&instance->vfio);
  give_room_back(mdev->type);
}

static struct mdev_driver instance_driver = {
    .device_api = VFIO_DEVICE_API_PCI_STRING,
    .probe = probe_instance,
    .remove = remove_instance,
    .get_available = get_available,
    .driver = {.name = "vm_mdev", .owner = THIS_MODULE, .mod_name = KBUILD_MODNAME},
};

static int probe_parent(struct pci_dev* device, const struct pci_device_id* id) {
  static const struct type types[TYPES] = {
      {.mdev = {.sysfs_name = "1", .pretty_name = "GRID T4-1Q"}, .size = 1},
      {.mdev = {.sysfs_name = "2", .pretty_name = "GRID T4-2Q"}, .size = 2},
  };
  struct parent* parent = kzalloc(sizeof(*parent), GFP_KERNEL);
  int i, ret;

  if (!parent) return -ENOMEM;
  mutex_init(&parent->lock);
  for (i = 0; i < TYPES; i++) {
    parent->types[i] = types[i];
    parent->list[i] = &parent->types[i].mdev;
  }
  pci_set_drvdata(device, parent);
  ret = mdev_register_parent(&parent->mdev, &device->dev, &instance_driver, parent->list, TYPES);
  if (ret) kfree(parent);
  return ret;
}

static void remove_parent(struct pci_dev* device) {
  struct parent* parent = pci_get_drvdata(device);

  mdev_unregister_parent(&parent->mdev);
  kfree(parent);
}

// The ids that fakepci.cc gives a device of QEMU's: a Tesla T4.
static const struct pci_device_id ids[] = {{PCI_DEVICE(0x10de, 0x1eb8)}, {}};

// Types stand in sysfs below the name of their parents' driver: nvidia-1.
static struct pci_driver parent_driver = {
    .name = "nvidia",
    .id_table = ids,
    .probe = probe_parent,
    .remove = remove_parent,
};

static int __init start(void) {
  int ret = mdev_register_driver(&instance_driver);

  if (ret) return ret;
  ret = pci_register_driver(&parent_driver);
  if (ret) mdev_unregister_driver(&instance_driver);
  return ret;
}

static void __exit stop(void) {
  pci_unregister_driver(&parent_driver);
  mdev_unregister_driver(&instance_driver);
}

module_init(start);
module_exit(stop);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Mediated devices for the test of vfio-agent");
