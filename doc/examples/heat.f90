! SPDX-License-Identifier: MIT
!
! heat.f90 - heat flows along a rod; each rank computes its part of it.
!
!   jiaf90 heat.f90 -o heat && jiarun -n 4 ./heat
!
! The rod's ends are held at 0 and 1; after enough steps the temperature is a
! straight line between them, which is what the program checks.
program heat
  use, intrinsic :: iso_c_binding
  use jia
  implicit none
  integer, parameter :: cells = 24, steps = 3000
  real(c_double), pointer :: now(:), next(:), swap(:)
  real(c_double), pointer :: worst(:)
  integer :: first, last, step, i

  call jia_init()
  call c_f_pointer(jia_malloc(8_c_size_t * (cells + 2)), now, [cells + 2])
  call c_f_pointer(jia_malloc(8_c_size_t * (cells + 2)), next, [cells + 2])
  call c_f_pointer(jia_malloc(8_c_size_t), worst, [1])
  first = 2 + cells * jia_pid / jia_hosts
  last = 1 + cells * (jia_pid + 1) / jia_hosts

  if (jia_pid == 0) then
    now(cells + 2) = 1
    next(cells + 2) = 1
  end if
  call jia_name(c_loc(now), 'rod')
  call jia_name(c_loc(next), 'rod')
  call jia_barrier()

  call jia_phase('steps')
  do step = 1, steps
    do i = first, last
      next(i) = (now(i - 1) + now(i + 1)) / 2
    end do
    call jia_barrier()
    swap => now
    now => next
    next => swap
  end do

  call jia_phase('check')
  call jia_lock(0)
  do i = first, last
    worst(1) = max(worst(1), abs(now(i) - real(i - 1, c_double) / (cells + 1)))
  end do
  call jia_unlock(0)
  call jia_barrier()
  if (jia_pid == 0) then
    if (worst(1) > 1d-6) then
      print *, 'wrong: a cell is off by', worst(1)
      error stop 1
    end if
    print '(a, i0, a)', 'heat: verified on ', jia_hosts, ' ranks'
  end if
  call jia_phase('')
  call jia_exit()
end program
