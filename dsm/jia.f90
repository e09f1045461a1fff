! SPDX-License-Identifier: MIT
!
! jia.f90 - jia.h for Fortran 2003 and later.
!
!   use jia
!   use, intrinsic :: iso_c_binding
!   real(c_double), pointer :: a(:, :)
!   call jia_init()
!   call c_f_pointer(jia_malloc(8_c_size_t * n * m), a, [n, m])
!   a(i, j) = ...                  ! memory of all ranks, at one address
!   call jia_exit()
!
! Names, meaning and errors are those of jia.h (see jia(7)); ranks, locks and
! keys count from 0 as they do there.  Constants begin with JIA_.  Texts are ordinary Fortran strings.
! The module needs no compiler's extension; it is installed as source, too, for
! compilers other than the one it was built with.
module jia
  use, intrinsic :: iso_c_binding, only: c_int, c_long, c_size_t, c_float, &
    c_ptr, c_char, c_null_ptr, c_null_char, c_loc
  implicit none
  private :: c_int, c_long, c_size_t, c_float, c_ptr, c_char, c_null_ptr, &
    c_null_char, c_loc, c_text

  integer(c_int), bind(c, name='jia_pid'), protected :: jia_pid
  integer(c_int), bind(c, name='hostc'), protected :: jia_hosts

  integer(c_int), parameter :: JIA_OFF = 0, JIA_ON = 1
  integer(c_int), parameter :: JIA_HMIG = 0, JIA_ADWD = 1, JIA_BROADCAST = 2, &
    JIA_LOADBAL = 3, JIA_WVEC = 4
  integer(c_int), parameter :: JIA_PROC_ALL = -1, JIA_TAG_ALL = -1
  integer(c_int), parameter :: JIA_READ = 0, JIA_WRITE = 1, JIA_OVERWRITE = 2
  integer(c_int), parameter :: JIA_SUM_INT = 0, JIA_MAX_INT = 1, &
    JIA_MIN_INT = 2, JIA_SUM_FLOAT = 10, JIA_MAX_FLOAT = 11, &
    JIA_MIN_FLOAT = 12, JIA_SUM_DOUBLE = 20, JIA_MAX_DOUBLE = 21, &
    JIA_MIN_DOUBLE = 22

  interface
    subroutine jia_exit() bind(c, name='jia_exit')
    end subroutine

    function jia_malloc(bytes) bind(c, name='jia_malloc') result(p)
      import :: c_size_t, c_ptr
      integer(c_size_t), value :: bytes
      type(c_ptr) :: p
    end function

    function jia_malloc_on(bytes, block, home) bind(c, name='jia_malloc_on') &
        result(p)
      import :: c_size_t, c_int, c_ptr
      integer(c_size_t), value :: bytes, block
      integer(c_int), value :: home
      type(c_ptr) :: p
    end function

    subroutine jia_free(p) bind(c, name='jia_free')
      import :: c_ptr
      type(c_ptr), value :: p
    end subroutine

    subroutine jia_lock(lock) bind(c, name='jia_lock')
      import :: c_int
      integer(c_int), value :: lock
    end subroutine

    subroutine jia_unlock(lock) bind(c, name='jia_unlock')
      import :: c_int
      integer(c_int), value :: lock
    end subroutine

    function jia_trylock(lock) bind(c, name='jia_trylock') result(taken)
      import :: c_int
      integer(c_int), value :: lock
      integer(c_int) :: taken
    end function

    subroutine jia_rdlock(lock) bind(c, name='jia_rdlock')
      import :: c_int
      integer(c_int), value :: lock
    end subroutine

    subroutine jia_wrlock(lock) bind(c, name='jia_wrlock')
      import :: c_int
      integer(c_int), value :: lock
    end subroutine

    subroutine jia_rwunlock(lock) bind(c, name='jia_rwunlock')
      import :: c_int
      integer(c_int), value :: lock
    end subroutine

    ! By address: c_loc() of something in shared memory.
    subroutine jia_lock_at(addr) bind(c, name='jia_lock_at')
      import :: c_ptr
      type(c_ptr), value :: addr
    end subroutine

    subroutine jia_unlock_at(addr) bind(c, name='jia_unlock_at')
      import :: c_ptr
      type(c_ptr), value :: addr
    end subroutine

    subroutine jia_rdlock_at(addr) bind(c, name='jia_rdlock_at')
      import :: c_ptr
      type(c_ptr), value :: addr
    end subroutine

    subroutine jia_wrlock_at(addr) bind(c, name='jia_wrlock_at')
      import :: c_ptr
      type(c_ptr), value :: addr
    end subroutine

    subroutine jia_rwunlock_at(addr) bind(c, name='jia_rwunlock_at')
      import :: c_ptr
      type(c_ptr), value :: addr
    end subroutine

    subroutine jia_cond_wait(cond) bind(c, name='jia_cond_wait')
      import :: c_ptr
      type(c_ptr), value :: cond
    end subroutine

    subroutine jia_cond_signal(cond) bind(c, name='jia_cond_signal')
      import :: c_ptr
      type(c_ptr), value :: cond
    end subroutine

    subroutine jia_cond_broadcast(cond) bind(c, name='jia_cond_broadcast')
      import :: c_ptr
      type(c_ptr), value :: cond
    end subroutine

    subroutine jia_setcv(cv) bind(c, name='jia_setcv')
      import :: c_int
      integer(c_int), value :: cv
    end subroutine

    subroutine jia_resetcv(cv) bind(c, name='jia_resetcv')
      import :: c_int
      integer(c_int), value :: cv
    end subroutine

    subroutine jia_waitcv(cv) bind(c, name='jia_waitcv')
      import :: c_int
      integer(c_int), value :: cv
    end subroutine

    ! Buffers are c_loc() of an array.
    subroutine jia_send(buf, len, toproc, tag) bind(c, name='jia_send')
      import :: c_ptr, c_int
      type(c_ptr), value :: buf
      integer(c_int), value :: len, toproc, tag
    end subroutine

    function jia_recv(buf, len, fromproc, tag) bind(c, name='jia_recv') &
        result(got)
      import :: c_ptr, c_int
      type(c_ptr), value :: buf
      integer(c_int), value :: len, fromproc, tag
      integer(c_int) :: got
    end function

    subroutine jia_reduce(snd, rcv, count, op, root) &
        bind(c, name='jia_reduce')
      import :: c_ptr, c_int
      type(c_ptr), value :: snd, rcv
      integer(c_int), value :: count, op, root
    end subroutine

    subroutine jia_bcast(buf, len, root) bind(c, name='jia_bcast')
      import :: c_ptr, c_int
      type(c_ptr), value :: buf
      integer(c_int), value :: len, root
    end subroutine

    subroutine jia_divtask(first, last) bind(c, name='jia_divtask')
      import :: c_int
      integer(c_int), intent(inout) :: first, last
    end subroutine

    subroutine jia_loadcheck() bind(c, name='jia_loadcheck')
    end subroutine

    subroutine jia_touch(addr, len, mode) bind(c, name='jia_touch')
      import :: c_ptr, c_size_t, c_int
      type(c_ptr), value :: addr
      integer(c_size_t), value :: len
      integer(c_int), value :: mode
    end subroutine

    subroutine jia_untouch(addr, len) bind(c, name='jia_untouch')
      import :: c_ptr, c_size_t
      type(c_ptr), value :: addr
      integer(c_size_t), value :: len
    end subroutine

    subroutine jia_barrier() bind(c, name='jia_barrier')
    end subroutine

    subroutine jia_wait() bind(c, name='jia_wait')
    end subroutine

    subroutine jia_threads(n) bind(c, name='jia_threads')
      import :: c_int
      integer(c_int), value :: n
    end subroutine

    subroutine jia_config(key, val) bind(c, name='jia_config')
      import :: c_int
      integer(c_int), value :: key, val
    end subroutine

    function jia_clock() bind(c, name='jia_clock') result(seconds)
      import :: c_float
      real(c_float) :: seconds
    end function

    function jia_startstat() bind(c, name='jia_startstat') result(us)
      import :: c_int
      integer(c_int) :: us
    end function

    function jia_stopstat() bind(c, name='jia_stopstat') result(us)
      import :: c_int
      integer(c_int) :: us
    end function
  end interface

contains

  ! Arguments are read with get_command_argument(), as in any program.
  subroutine jia_init()
    interface
      subroutine c_init(argc, argv) bind(c, name='jia_init')
        import :: c_int, c_ptr
        integer(c_int), value :: argc
        type(c_ptr), value :: argv
      end subroutine
    end interface

    call c_init(0_c_int, c_null_ptr)
  end subroutine

  subroutine jia_set(name, text)
    character(len=*), intent(in) :: name, text
    interface
      subroutine c_set(name, text) bind(c, name='jia_set')
        import :: c_char
        character(kind=c_char), intent(in) :: name(*), text(*)
      end subroutine
    end interface

    call c_set(c_text(name), c_text(text))
  end subroutine

  ! An empty text ends the phase.
  subroutine jia_phase(name)
    character(len=*), intent(in) :: name
    interface
      subroutine c_phase(name) bind(c, name='jia_phase')
        import :: c_ptr
        type(c_ptr), value :: name
      end subroutine
    end interface
    character(kind=c_char), target :: text(len_trim(name) + 1)

    text = transfer(c_text(name), text)
    if (len_trim(name) == 0) then
      call c_phase(c_null_ptr)
    else
      call c_phase(c_loc(text))
    end if
  end subroutine

  subroutine jia_name(p, name)
    type(c_ptr), intent(in) :: p
    character(len=*), intent(in) :: name
    interface
      subroutine c_name(p, name) bind(c, name='jia_name')
        import :: c_ptr, c_char
        type(c_ptr), value :: p
        character(kind=c_char), intent(in) :: name(*)
      end subroutine
    end interface

    call c_name(p, c_text(name))
  end subroutine

  ! Blanks at the end do not count, as elsewhere in Fortran.
  pure function c_text(text) result(c)
    character(len=*), intent(in) :: text
    character(kind=c_char, len=len_trim(text) + 1) :: c

    c = trim(text) // c_null_char
  end function
end module
